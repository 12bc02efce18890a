-- append_entries: journal entries of attempts that are known to have their leases.
INSERT INTO journal (task_uid, line, position, entry) VALUES (:uid, :line, :position, :entry);
