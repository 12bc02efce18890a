-- sealed_pause: one question and its answer, still sealed.
SELECT question, answer FROM pauses WHERE task_uid = :uid AND path = :path;
