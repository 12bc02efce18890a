-- reseal_event: the body of an event under another key. Its digest is of the plain body, so the chain holds.
UPDATE events SET body = :body WHERE task_uid = :uid AND number = :number AND body = :old_body RETURNING number;
