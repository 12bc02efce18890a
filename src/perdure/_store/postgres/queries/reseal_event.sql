-- reseal_event: the body of an event under another key. Its digest is of the plain body, so the chain holds.
UPDATE perdure.events SET body = %(body)s::bytea
WHERE task_uid = %(uid)s::text AND number = %(number)s::bigint AND body = %(old_body)s::bytea
RETURNING number;
