-- 0009_answers: the answer of a batch with one write, for a process whose connection was lost at COMMIT.

ALTER TABLE perdure.committers ADD COLUMN answer TEXT;
