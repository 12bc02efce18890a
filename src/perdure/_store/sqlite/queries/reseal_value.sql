-- reseal_value: the same value under another key; its version stays, as nothing has changed.
UPDATE shelf SET value = :value
WHERE owner = :uid AND kind = :kind AND key = :key AND value = :old_value
RETURNING key;
