-- read_entry: one entry of a journal.
SELECT entry FROM journal WHERE task_uid = :uid AND line = :line AND position = :position;
