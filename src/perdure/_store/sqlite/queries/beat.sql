-- beat: show that this process lives. One row serves all its leases; a watcher compares the count, never a time.
UPDATE workers SET beats = beats + 1 WHERE id = :worker RETURNING beats;
