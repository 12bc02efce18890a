-- find_paused: which of these tasks are paused, and why.
SELECT uid, pause FROM perdure.tasks
WHERE uid IN (SELECT jsonb_array_elements_text(%(uids)s::jsonb)) AND status = 'paused' ORDER BY uid;
