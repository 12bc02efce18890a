-- 0010_journal_ends: how far each journal has come, apart from its entries, so that missing ones at its end are noticed.

CREATE TABLE perdure.journal_ends (
  task_uid TEXT COLLATE "C" PRIMARY KEY,
  line     BIGINT NOT NULL,
  position BIGINT NOT NULL
) WITH (fillfactor = 50);
