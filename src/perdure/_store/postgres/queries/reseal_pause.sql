-- reseal_pause: seal a question, and its answer if it has one, with another key, unless it was answered meanwhile.
UPDATE perdure.pauses SET question = %(question)s::bytea, answer = %(answer)s::bytea
WHERE task_uid = %(uid)s::text AND path = %(path)s::text AND question = %(old_question)s::bytea
  AND answer IS NOT DISTINCT FROM %(old_answer)s::bytea
RETURNING path;
