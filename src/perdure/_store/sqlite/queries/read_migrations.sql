-- read_migrations: how this store came to its present form.
SELECT name, at FROM migrations ORDER BY name;
