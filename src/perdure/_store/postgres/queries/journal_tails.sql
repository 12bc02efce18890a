-- journal_tails: the last entries of the journals of these tasks, at most `count` of each, without long entries.
SELECT journal.task_uid, journal.position, journal.entry
FROM perdure.journal_ends AS ends JOIN perdure.journal ON journal.task_uid = ends.task_uid AND journal.line = ends.line
  AND journal.position > ends.position - %(count)s::bigint AND journal.position <= ends.position
WHERE ends.task_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) AND length(journal.entry) <= 16384
ORDER BY journal.task_uid, journal.position;
