-- read_switches: the stopped tasks of a namespace; id '' means that the whole namespace is stopped.
SELECT id, why, at, author FROM perdure.switches WHERE namespace = %(namespace)s::text AND is_on ORDER BY id;
