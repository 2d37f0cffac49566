-- API keys: who calls and what the key grants. The token itself is not here, only its SHA-256.

CREATE TABLE api_key (
    key_id      text PRIMARY KEY,
    token_hash  bytea NOT NULL CHECK (octet_length(token_hash) = 32),
    user_name   text NOT NULL CHECK (user_name <> ''),
    groups      text[] NOT NULL,
    clearance   smallint NOT NULL CHECK (clearance BETWEEN 0 AND 3),
    permissions text[] NOT NULL
        CHECK (permissions <> '{}' AND permissions <@ ARRAY['search', 'explain', 'steward', 'operate', 'execute']),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL CHECK (expires_at > created_at),
    revoked_at  timestamptz
);
