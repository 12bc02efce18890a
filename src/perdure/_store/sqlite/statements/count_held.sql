-- count_held: how many of these attempts (uid, epoch, worker) have the leases they write under.
SELECT count(*) FROM json_each(?) AS fence CROSS JOIN leases ON task_uid = fence.value ->> 0
WHERE epoch = fence.value ->> 1 AND worker = fence.value ->> 2;
