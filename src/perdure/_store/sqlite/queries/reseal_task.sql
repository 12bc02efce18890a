-- reseal_task: seal a task's columns with another key, unless one of them was written meanwhile. The content does not
-- change, so the version and the time of the last change stay.
UPDATE tasks SET config = :config, pause = :pause, progress = :progress, result = :result, error = :error
WHERE uid = :uid AND config IS :old_config AND pause IS :old_pause AND progress IS :old_progress
  AND result IS :old_result AND error IS :old_error
RETURNING uid;
