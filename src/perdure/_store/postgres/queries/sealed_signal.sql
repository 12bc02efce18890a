-- sealed_signal: the value of one signal, still sealed.
SELECT value FROM perdure.signals
WHERE task_uid = %(uid)s::text AND name = %(signal)s::text AND number = %(number)s::bigint;
