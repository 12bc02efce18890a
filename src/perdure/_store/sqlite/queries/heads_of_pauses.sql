-- heads_of_pauses: the first bytes of each question and answer, which name their keys.
SELECT task_uid, path, substr(question, 1, 300), substr(answer, 1, 300)
FROM pauses WHERE (task_uid, path) > (:uid, :path) ORDER BY task_uid, path LIMIT :limit;
