-- announce: record the functions that this process can carry on, for callers that ask why a task does not continue.
UPDATE workers SET knows = :knows WHERE id = :worker RETURNING id;
