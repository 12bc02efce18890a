-- reseal_signal: seal a signal's value with another key.
UPDATE perdure.signals SET value = %(value)s::bytea
WHERE task_uid = %(uid)s::text AND name = %(signal)s::text AND number = %(number)s::bigint
  AND value = %(old_value)s::bytea
RETURNING number;
