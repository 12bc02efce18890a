-- find_paused: which of these tasks are paused, and why.
SELECT uid, pause FROM tasks WHERE uid IN (SELECT value FROM json_each(:uids)) AND status = 'paused' ORDER BY uid;
