-- heads_of_signals: the first bytes of each signal's value, which name its key.
SELECT task_uid, name, number, substr(value, 1, 300)
FROM signals WHERE (task_uid, name, number) > (:uid, :signal, :number) ORDER BY task_uid, name, number LIMIT :limit;
