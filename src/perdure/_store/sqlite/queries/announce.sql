-- announce: what this process can carry on, for whoever asks why a task does not go on.
UPDATE workers SET knows = :knows WHERE id = :worker RETURNING id;
