-- ask_worker: somebody wants something of a process, which looks for it now and then.
UPDATE perdure.workers SET wish = %(wish)s::text WHERE id = %(worker)s::text RETURNING id;
