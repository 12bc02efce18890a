-- reseal_signal: seal a signal's value with another key.
UPDATE signals SET value = :value
WHERE task_uid = :uid AND name = :signal AND number = :number AND value = :old_value
RETURNING number;
