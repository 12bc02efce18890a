-- read_journal_page: some entries of one line of a journal, in order.
SELECT position, entry FROM journal
WHERE task_uid = :uid AND line = :line AND position > :after ORDER BY position LIMIT :limit;
