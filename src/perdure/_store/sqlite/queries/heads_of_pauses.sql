-- heads_of_pauses: the beginnings of each question and answer, where their keys are named.
SELECT task_uid, path, substr(question, 1, 300), substr(answer, 1, 300)
FROM pauses WHERE (task_uid, path) > (:uid, :path) ORDER BY task_uid, path LIMIT :limit;
