-- pin: whether gc must leave this checkpoint alone.
UPDATE checkpoints SET pinned = :pinned WHERE task_uid = :uid AND seq = :target RETURNING seq;
