-- reseal_value: seal a value with another key. Its version stays, because its content does not change.
UPDATE shelf SET value = :value
WHERE owner = :uid AND kind = :kind AND key = :key AND value = :old_value
RETURNING key;
