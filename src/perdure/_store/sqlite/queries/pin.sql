-- pin: protect a checkpoint from gc, or stop protecting it.
UPDATE checkpoints SET pinned = :pinned WHERE task_uid = :uid AND seq = :target RETURNING seq;
