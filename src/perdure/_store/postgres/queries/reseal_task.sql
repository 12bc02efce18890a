-- reseal_task: seal a task's columns with another key, unless one of them was written meanwhile. The content does not
-- change, so the version and the time of the last change stay.
UPDATE perdure.tasks
SET config = %(config)s::bytea, pause = %(pause)s::bytea, progress = %(progress)s::bytea,
    result = %(result)s::bytea, error = %(error)s::bytea
WHERE uid = %(uid)s::text
  AND config IS NOT DISTINCT FROM %(old_config)s::bytea AND pause IS NOT DISTINCT FROM %(old_pause)s::bytea
  AND progress IS NOT DISTINCT FROM %(old_progress)s::bytea AND result IS NOT DISTINCT FROM %(old_result)s::bytea
  AND error IS NOT DISTINCT FROM %(old_error)s::bytea
RETURNING uid;
