-- 0010_journal_ends: the last position of each journal, stored apart from its entries, so that missing entries at its
-- end are noticed.

CREATE TABLE perdure.journal_ends (
  task_uid TEXT COLLATE "C" PRIMARY KEY,
  line     BIGINT NOT NULL,
  position BIGINT NOT NULL
) WITH (fillfactor = 50);
