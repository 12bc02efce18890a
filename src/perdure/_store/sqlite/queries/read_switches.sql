-- read_switches: what is stopped from outside in a namespace.
SELECT id, why, at, author FROM switches WHERE namespace = :namespace AND is_on ORDER BY id;
