-- ask_worker: leave a request for a process, which looks for requests now and then.
UPDATE workers SET wish = :wish WHERE id = :worker RETURNING id;
