-- hook_namespaces: the namespaces that have webhooks.
SELECT DISTINCT namespace FROM perdure.webhooks ORDER BY namespace;
