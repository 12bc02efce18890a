-- beat: this process lives. One row for all its leases; a watcher compares the count, never a time.
UPDATE workers SET beats = beats + 1 WHERE id = :worker RETURNING beats;
