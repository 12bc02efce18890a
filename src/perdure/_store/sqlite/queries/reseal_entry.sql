-- reseal_entry: seal one journal entry with another key.
UPDATE journal SET entry = :entry
WHERE task_uid = :uid AND line = :line AND position = :position AND entry = :old_entry
RETURNING position;
