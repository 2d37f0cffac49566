-- name: stored_records
-- What is stored for these keys, whichever source said it.
SELECT source, asset_key, id, overlay, payload_hash
FROM record
WHERE asset_key = ANY(%(keys)s);

-- name: incoming_records_table
-- Staging of one page, private to the session.
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_record (LIKE record) ON COMMIT DELETE ROWS;

-- name: incoming_records_copy
-- Columns in the order of the rows that are sent.
COPY incoming_record (source, asset_key, id, overlay, payload_hash, payload) FROM STDIN (FORMAT BINARY);

-- name: merge_records
-- Only rows that differ are written; an id that another source owns is skipped, also one that has just been taken.
INSERT INTO record AS stored (source, asset_key, id, overlay, payload_hash, payload)
SELECT source, asset_key, id, overlay, payload_hash, payload
FROM incoming_record AS incoming
WHERE overlay OR NOT EXISTS (
    SELECT FROM record AS owned
    WHERE owned.asset_key = incoming.asset_key AND NOT owned.overlay AND owned.source <> incoming.source
)
ON CONFLICT (source, asset_key) DO UPDATE
SET overlay = excluded.overlay, payload_hash = excluded.payload_hash, payload = excluded.payload
WHERE (stored.overlay, stored.payload_hash) IS DISTINCT FROM (excluded.overlay, excluded.payload_hash);

-- name: record_keys
-- Every key stored for a source, for comparison with a complete listing.
SELECT asset_key FROM record WHERE source = %(source)s;

-- name: quarantine_add
-- A record that cannot be processed; seen again, its attempts are counted.
INSERT INTO quarantine AS known (source, record_ref, stage, error, payload_hash, payload, run_id)
VALUES (%(source)s, %(record_ref)s, %(stage)s, %(error)s, %(payload_hash)s, %(payload)s, %(run_id)s)
ON CONFLICT (source, stage, record_ref) DO UPDATE
SET error = excluded.error,
    attempts = known.attempts + CASE WHEN known.run_id = excluded.run_id THEN 0 ELSE 1 END,
    payload_hash = excluded.payload_hash,
    payload = excluded.payload,
    run_id = excluded.run_id,
    last_seen_at = now();

-- name: quarantine_resolve
-- What this run did not reject again is healed.
DELETE FROM quarantine
WHERE stage = %(stage)s AND run_id <> %(run_id)s AND (%(source)s::text IS NULL OR source = %(source)s);

-- name: quarantine_list
-- The quarantine, newest first.
SELECT source, record_ref, stage, error, attempts, encode(payload_hash, 'hex') AS payload_hash, run_id,
       first_seen_at, last_seen_at
FROM quarantine
ORDER BY last_seen_at DESC, source, stage, record_ref
LIMIT %(limit)s;
