-- hook_namespaces: the namespaces that have webhooks.
SELECT DISTINCT namespace FROM webhooks ORDER BY namespace;
