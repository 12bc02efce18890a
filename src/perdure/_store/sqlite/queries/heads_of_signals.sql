-- heads_of_signals: the beginning of what each signal carries, where its key is named.
SELECT task_uid, name, number, substr(value, 1, 300)
FROM signals WHERE (task_uid, name, number) > (:uid, :signal, :number) ORDER BY task_uid, name, number LIMIT :limit;
