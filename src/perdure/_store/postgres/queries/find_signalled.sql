-- find_signalled: which of these tasks were sent a signal of this name.
SELECT DISTINCT task_uid FROM perdure.signals
WHERE name = %(signal)s::text AND task_uid IN (SELECT json_array_elements_text(%(uids)s::json)) ORDER BY task_uid;
