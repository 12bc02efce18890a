-- read_outline: all checkpoints of a task without their bytes; for a large frame, the owner of its chunks.
SELECT seq, line, parent, base, at, label, cause, depth, author, size, stored, chain_size, chain_length, position,
       valid, superseded, pinned, chunks, CASE WHEN chunks > 0 THEN frame ELSE x'' END
FROM checkpoints WHERE task_uid = :uid ORDER BY seq;
