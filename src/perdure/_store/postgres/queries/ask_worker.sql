-- ask_worker: leave a request for a process, which looks for requests now and then.
UPDATE perdure.workers SET wish = %(wish)s::text WHERE id = %(worker)s::text RETURNING id;
