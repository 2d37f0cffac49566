-- name: key_add
-- Keep a new key.
INSERT INTO api_key (key_id, token_hash, user_name, groups, clearance, permissions, created_at, expires_at, revoked_at)
VALUES (%(key_id)s, %(token_hash)s, %(user_name)s, %(groups)s, %(clearance)s, %(permissions)s, %(created_at)s,
        %(expires_at)s, %(revoked_at)s);

-- name: key_find
-- The key of that id, in force or not.
SELECT key_id, token_hash, user_name, groups, clearance, permissions, created_at, expires_at, revoked_at
FROM api_key
WHERE key_id = %(key_id)s;

-- name: key_list
-- Every key, oldest first.
SELECT key_id, token_hash, user_name, groups, clearance, permissions, created_at, expires_at, revoked_at
FROM api_key
ORDER BY created_at, key_id;

-- name: key_revoke
-- Revoke a key; no row when there is none of that id or it is revoked already, so that the first time stands.
UPDATE api_key
SET revoked_at = %(now)s
WHERE key_id = %(key_id)s AND revoked_at IS NULL
RETURNING key_id;
