-- append_entries: journal entries of attempts that are known to have their leases; the last line once for each.
-- A position that is taken is an error here, and undoes this statement only.
INSERT INTO journal (task_uid, line, position, entry) VALUES
(?, ?, ?, ?);
