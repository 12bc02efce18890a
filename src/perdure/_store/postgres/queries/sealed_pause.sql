-- sealed_pause: one question and its answer, still sealed.
SELECT question, answer FROM perdure.pauses WHERE task_uid = %(uid)s::text AND path = %(path)s::text;
