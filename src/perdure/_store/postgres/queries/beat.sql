-- beat: show that this process lives. One row serves all its leases; a watcher compares the count, never a time.
UPDATE perdure.workers SET beats = beats + 1 WHERE id = %(worker)s::text RETURNING beats;
