INSERT INTO checkpoints (task_uid, seq, line, parent, base, at, label, cause, depth, author,
                         size, stored, chain_size, chain_length, chunks, frame)
VALUES (:uid, 0, 1, NULL, NULL, :at, '', :cause, 0, :author, :size, :stored, 0, 0, :chunks, :frame);
