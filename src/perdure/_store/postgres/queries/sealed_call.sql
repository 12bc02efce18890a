-- sealed_call: a durable function's arguments, still sealed.
SELECT arguments, budget FROM perdure.calls WHERE task_uid = %(uid)s::text;
