-- 0009_journal_ends: the last position of each journal, stored apart from its entries, so that missing entries at its
-- end are noticed.

CREATE TABLE journal_ends (
  task_uid TEXT PRIMARY KEY,
  line     INTEGER NOT NULL,
  position INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER journal_end AFTER INSERT ON journal BEGIN
  INSERT INTO journal_ends (task_uid, line, position) VALUES (NEW.task_uid, NEW.line, NEW.position)
  ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
  WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position); END;
