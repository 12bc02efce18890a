free AS (
  INSERT INTO perdure.leases (task_uid, epoch) SELECT uid, 0 FROM changed
),
--> first_state
