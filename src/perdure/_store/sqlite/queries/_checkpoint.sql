INSERT INTO checkpoints (task_uid, seq, line, parent, base, at, label, cause, depth, author,
                         size, stored, chain_size, chain_length, position, chunks, frame)
SELECT uid, seq, line, :parent, :base, :at, :label, :cause, :depth, :author,
       :size, :stored, :chain_size, :chain_length, :position, :chunks, :frame
FROM tasks WHERE uid = :uid AND :frame IS NOT NULL;
