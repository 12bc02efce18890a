-- read_entry: one entry of a journal.
SELECT entry FROM perdure.journal
WHERE task_uid = %(uid)s::text AND line = %(line)s::bigint AND position = %(position)s::bigint;
