-- read_journal: one line of a journal, in order.
SELECT position, entry FROM perdure.journal
WHERE task_uid = %(uid)s::text AND line = %(line)s::bigint ORDER BY position;
