-- sealed_signal: the value of one signal, still sealed.
SELECT value FROM signals WHERE task_uid = :uid AND name = :signal AND number = :number;
