-- reseal_pause: seal a question, and its answer if it has one, with another key, unless it was answered meanwhile.
UPDATE pauses SET question = :question, answer = :answer
WHERE task_uid = :uid AND path = :path AND question = :old_question AND answer IS :old_answer
RETURNING path;
