-- set_switch: stop a task from outside, or let it continue; with id '' every task of a namespace.
INSERT INTO perdure.switches (namespace, id, is_on, why, at, author)
VALUES (%(namespace)s::text, %(id)s::text, %(is_on)s::int <> 0, %(why)s::text, %(at)s::bigint, %(author)s::text)
ON CONFLICT (namespace, id)
DO UPDATE SET is_on = excluded.is_on, why = excluded.why, at = excluded.at, author = excluded.author
RETURNING is_on;
