-- journal_tails: the last entries of the journals of these tasks, at most `count` of each, without long entries.
SELECT journal.task_uid, journal.position, journal.entry
FROM journal_ends AS ends JOIN journal ON journal.task_uid = ends.task_uid AND journal.line = ends.line
  AND journal.position > ends.position - :count AND journal.position <= ends.position
WHERE ends.task_uid IN (SELECT value FROM json_each(:uids)) AND length(journal.entry) <= 16384
ORDER BY journal.task_uid, journal.position;
