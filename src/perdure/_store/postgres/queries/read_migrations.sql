-- read_migrations: how this store came to its present form.
SELECT name, at FROM perdure.migrations ORDER BY name;
