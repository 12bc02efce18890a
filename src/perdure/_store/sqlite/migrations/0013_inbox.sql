-- 0013_inbox: open questions to people, the soonest to expire first, without opening sealed columns.
-- Of a question that was asked before this migration, only the next due moment is known: its reminder or its expiry.

ALTER TABLE pauses ADD COLUMN expires_at INTEGER;
UPDATE pauses SET expires_at = due_at WHERE answer IS NULL AND reason IN ('human_approval', 'human_input');
CREATE INDEX pauses_open ON pauses (COALESCE(expires_at, 9007199254740991), asked_at, task_uid, path)
  WHERE answer IS NULL AND reason IN ('human_approval', 'human_input');
CREATE INDEX tasks_asking ON tasks (namespace, COALESCE(due_at, 9007199254740991), updated_at, uid)
  WHERE status = 'paused' AND pause_reason IN ('human_approval', 'human_input');
