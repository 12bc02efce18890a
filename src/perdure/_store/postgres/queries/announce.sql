-- announce: record the functions that this process can carry on, for callers that ask why a task does not continue.
UPDATE perdure.workers SET knows = %(knows)s::text WHERE id = %(worker)s::text RETURNING id;
