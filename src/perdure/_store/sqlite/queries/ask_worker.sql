-- ask_worker: somebody wants something of a process, which looks for it now and then.
UPDATE workers SET wish = :wish WHERE id = :worker RETURNING id;
