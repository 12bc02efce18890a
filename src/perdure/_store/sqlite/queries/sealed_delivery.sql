-- sealed_delivery: what is sealed of one message. `uid` is its id.
SELECT body, answer FROM hook_deliveries WHERE id = :uid;
