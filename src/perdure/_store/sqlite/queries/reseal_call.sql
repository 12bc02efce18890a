-- reseal_call: what a durable function was called with, under another key.
UPDATE calls SET arguments = :arguments, budget = :budget
WHERE task_uid = :uid AND arguments = :old_arguments AND budget IS :old_budget
RETURNING task_uid;
