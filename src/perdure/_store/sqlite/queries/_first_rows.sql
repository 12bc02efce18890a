INSERT INTO leases (task_uid, epoch) VALUES (:uid, 0);
--> first_state
