-- 0009_answers: what the one write of a batch answered, for the process whose connection was lost with its COMMIT.

ALTER TABLE perdure.committers ADD COLUMN answer TEXT;
