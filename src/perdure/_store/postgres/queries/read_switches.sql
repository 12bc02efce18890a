-- read_switches: what is stopped from outside in a namespace.
SELECT id, why, at, author FROM perdure.switches WHERE namespace = %(namespace)s::text AND is_on ORDER BY id;
