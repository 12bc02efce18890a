-- set_switch: stop a task (or, with id '', every task of a namespace) from outside, or let it go on.
INSERT INTO switches (namespace, id, is_on, why, at, author) VALUES (:namespace, :id, :is_on, :why, :at, :author)
ON CONFLICT (namespace, id) DO UPDATE SET is_on = :is_on, why = :why, at = :at, author = :author
RETURNING is_on;
