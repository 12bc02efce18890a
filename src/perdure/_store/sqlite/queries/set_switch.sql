-- set_switch: stop a task from outside, or let it continue; with id '' every task of a namespace.
INSERT INTO switches (namespace, id, is_on, why, at, author) VALUES (:namespace, :id, :is_on, :why, :at, :author)
ON CONFLICT (namespace, id) DO UPDATE SET is_on = :is_on, why = :why, at = :at, author = :author
RETURNING is_on;
