-- reseal_call: seal a durable function's arguments with another key.
UPDATE calls SET arguments = :arguments, budget = :budget
WHERE task_uid = :uid AND arguments = :old_arguments AND budget IS :old_budget
RETURNING task_uid;
