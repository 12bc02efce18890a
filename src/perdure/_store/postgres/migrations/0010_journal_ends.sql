-- 0010_journal_ends: how far each journal has come, apart from its entries, so that missing ones at its end are noticed.

CREATE TABLE perdure.journal_ends (
  task_uid TEXT COLLATE "C" PRIMARY KEY,
  line     BIGINT NOT NULL,
  position BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE FUNCTION perdure.note_journal_end() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO perdure.journal_ends (task_uid, line, position)
  SELECT DISTINCT ON (task_uid) task_uid, line, position FROM added ORDER BY task_uid, line DESC, position DESC
  ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
  WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position); RETURN NULL; END
$$;
CREATE TRIGGER journal_end AFTER INSERT ON perdure.journal
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION perdure.note_journal_end();
