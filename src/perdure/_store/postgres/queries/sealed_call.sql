-- sealed_call: what a durable function was called with, as it is sealed.
SELECT arguments, budget FROM perdure.calls WHERE task_uid = %(uid)s::text;
