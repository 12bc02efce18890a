-- sealed_signal: what one signal carries, as it is sealed.
SELECT value FROM signals WHERE task_uid = :uid AND name = :signal AND number = :number;
