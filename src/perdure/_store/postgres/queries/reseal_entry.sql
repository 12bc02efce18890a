-- reseal_entry: seal one journal entry with another key.
UPDATE perdure.journal SET entry = %(entry)s::bytea
WHERE task_uid = %(uid)s::text AND line = %(line)s::bigint AND position = %(position)s::bigint
  AND entry = %(old_entry)s::bytea
RETURNING position;
