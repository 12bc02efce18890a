-- sealed_signal: what one signal carries, as it is sealed.
SELECT value FROM perdure.signals
WHERE task_uid = %(uid)s::text AND name = %(signal)s::text AND number = %(number)s::bigint;
