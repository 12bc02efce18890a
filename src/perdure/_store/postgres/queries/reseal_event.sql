-- reseal_event: seal the body of an event with another key. Its digest is of the plain body, so the chain holds.
UPDATE perdure.events SET body = %(body)s::bytea
WHERE task_uid = %(uid)s::text AND number = %(number)s::bigint AND body = %(old_body)s::bytea
RETURNING number;
