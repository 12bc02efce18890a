-- sealed_pause: one question and its answer, as they are sealed.
SELECT question, answer FROM perdure.pauses WHERE task_uid = %(uid)s::text AND path = %(path)s::text;
