-- reseal_call: seal a durable function's arguments with another key.
UPDATE perdure.calls SET arguments = %(arguments)s::bytea, budget = %(budget)s::bytea
WHERE task_uid = %(uid)s::text AND arguments = %(old_arguments)s::bytea
  AND budget IS NOT DISTINCT FROM %(old_budget)s::bytea
RETURNING task_uid;
