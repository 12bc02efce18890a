-- announce: what this process can carry on, for whoever asks why a task does not go on.
UPDATE perdure.workers SET knows = %(knows)s::text WHERE id = %(worker)s::text RETURNING id;
