-- `|| ''` as in append_entry.
WITH fence AS MATERIALIZED (
  SELECT 1 FROM perdure.leases
  WHERE task_uid = %(uid)s::text AND epoch = %(epoch)s::bigint AND worker || '' = %(worker)s::text
  FOR SHARE
),
