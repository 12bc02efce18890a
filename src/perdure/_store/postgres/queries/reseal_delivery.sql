-- reseal_delivery: seal a message and its answer with another key. `uid` is the message's id.
UPDATE perdure.hook_deliveries SET body = %(body)s::bytea, answer = %(answer)s::bytea
WHERE id = %(uid)s::text AND body = %(old_body)s::bytea AND answer IS NOT DISTINCT FROM %(old_answer)s::bytea
RETURNING id;
