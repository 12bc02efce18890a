-- reseal_event: seal the body of an event with another key. Its digest is of the plain body, so the chain holds.
UPDATE events SET body = :body WHERE task_uid = :uid AND number = :number AND body = :old_body RETURNING number;
