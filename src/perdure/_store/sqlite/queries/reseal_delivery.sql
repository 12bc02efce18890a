-- reseal_delivery: seal a message and its answer with another key. `uid` is the message's id.
UPDATE hook_deliveries SET body = :body, answer = :answer
WHERE id = :uid AND body = :old_body AND answer IS NOT DISTINCT FROM :old_answer
RETURNING id;
