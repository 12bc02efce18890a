-- read_journal_page: some entries of one line of a journal, in order.
SELECT position, entry FROM perdure.journal
WHERE task_uid = %(uid)s::text AND line = %(line)s::bigint AND position > %(after)s::bigint
ORDER BY position LIMIT %(limit)s::bigint;
