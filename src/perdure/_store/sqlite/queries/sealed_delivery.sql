-- sealed_delivery: the sealed part of one message. `uid` is its id.
SELECT body, answer FROM hook_deliveries WHERE id = :uid;
