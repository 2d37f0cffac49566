-- name: stale_assets
-- Ids whose stored records are not what their draft (or else their published form) was made of, with the records,
-- the owner's first. The digest also covers how assets are composed, so new rules make everything stale.
WITH current AS (
    SELECT asset_key,
           sha256(string_agg(convert_to(source, 'UTF8') || payload_hash, ''::bytea ORDER BY overlay, source)
                  || %(fingerprint)s) AS record_digest
    FROM record
    GROUP BY asset_key
), stale AS (
    SELECT current.asset_key, current.record_digest
    FROM current
    LEFT JOIN draft USING (asset_key)
    LEFT JOIN asset USING (asset_key)
    WHERE %(everything)s
       OR current.record_digest IS DISTINCT FROM coalesce(draft.record_digest, asset.record_digest)
)
SELECT stale.asset_key, stale.record_digest, min(record.id) AS id,
       array_agg(record.source ORDER BY record.overlay, record.source) AS sources,
       jsonb_agg(record.payload ORDER BY record.overlay, record.source) AS payloads
FROM stale JOIN record USING (asset_key)
GROUP BY stale.asset_key, stale.record_digest
ORDER BY stale.asset_key;

-- name: acl_add
-- Intern access lists; a known one is left alone.
INSERT INTO acl (acl_id, classification, groups, users, denied_groups, denied_users)
VALUES (%(acl_id)s, %(classification)s, %(groups)s, %(users)s, %(denied_groups)s, %(denied_users)s)
ON CONFLICT (acl_id) DO NOTHING;

-- name: acl_by_id
-- Access lists by id.
SELECT acl_id, classification, groups, users, denied_groups, denied_users
FROM acl
WHERE acl_id = ANY(%(acl_ids)s);

-- name: incoming_drafts_table
-- Staging of one page of drafts, private to the session.
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_draft (LIKE draft) ON COMMIT DELETE ROWS;

-- name: incoming_drafts_copy
-- Columns in the order of the rows that are sent.
COPY incoming_draft (asset_key, id, source, object_type, name, title, acl_id, record_digest, payload)
FROM STDIN (FORMAT BINARY);

-- name: relabelled
-- Keys whose name, title, type or access differs from what other assets' narratives were composed with.
SELECT incoming.asset_key
FROM incoming_draft incoming
LEFT JOIN draft USING (asset_key)
LEFT JOIN asset USING (asset_key)
WHERE CASE WHEN draft.asset_key IS NOT NULL
           THEN (incoming.name, incoming.title, incoming.object_type, incoming.acl_id)
                IS DISTINCT FROM (draft.name, draft.title, draft.object_type, draft.acl_id)
           ELSE (incoming.name, incoming.title, incoming.object_type, incoming.acl_id)
                IS DISTINCT FROM (asset.name, asset.title, asset.object_type, asset.acl_id)
      END;

-- name: merge_drafts
-- The newest records win; what had been composed of older ones is dropped.
INSERT INTO draft (asset_key, id, source, object_type, name, title, acl_id, record_digest, payload)
SELECT asset_key, id, source, object_type, name, title, acl_id, record_digest, payload FROM incoming_draft
ON CONFLICT (asset_key) DO UPDATE
SET source = excluded.source, object_type = excluded.object_type, name = excluded.name, title = excluded.title,
    acl_id = excluded.acl_id, record_digest = excluded.record_digest, payload = excluded.payload, composed = NULL;

-- name: drop_edges
-- The references of these assets, before they are written anew.
DELETE FROM edge
WHERE asset_key = ANY(%(keys)s)
  AND (asset_key, target_key) NOT IN (SELECT * FROM unnest(%(from_keys)s::bigint[], %(to_keys)s::bigint[]));

-- name: add_edges
-- Which asset may name which: a renamed or hidden target recomposes those that refer to it.
INSERT INTO edge (asset_key, target_key)
SELECT * FROM unnest(%(from_keys)s::bigint[], %(to_keys)s::bigint[])
ON CONFLICT DO NOTHING;

-- name: recompose_referring
-- Drafts that refer to these keys have to be composed again, also those of assets that were never published.
UPDATE draft SET composed = NULL
FROM edge
WHERE edge.asset_key = draft.asset_key AND edge.target_key = ANY(%(keys)s) AND draft.composed IS NOT NULL;

-- name: redraft_referring
-- Published assets that refer to these keys are drafted again, unchanged but for what they say of them.
INSERT INTO draft (asset_key, id, source, object_type, name, title, acl_id, record_digest, payload)
SELECT DISTINCT asset.asset_key, asset.id, asset.source, asset.object_type, asset.name, asset.title, asset.acl_id,
       asset.record_digest, asset_document.payload
FROM edge
JOIN asset USING (asset_key)
JOIN asset_document USING (asset_key)
WHERE edge.target_key = ANY(%(keys)s)
ON CONFLICT (asset_key) DO NOTHING;

-- name: tighten_access
-- A stricter access list holds at once; whatever else changed waits until it is published as a whole.
UPDATE asset SET acl_id = given.acl_id
FROM (SELECT * FROM unnest(%(keys)s::bigint[], %(acl_ids)s::bigint[])) AS given (asset_key, acl_id)
WHERE given.asset_key = asset.asset_key;

-- name: published_access
-- The access list that readers are held to now.
SELECT asset_key, acl_id FROM asset WHERE asset_key = ANY(%(keys)s);

-- name: uncomposed_drafts
-- The next drafts to compose.
SELECT asset_key, id, source, acl_id, payload
FROM draft
WHERE composed IS NULL AND asset_key > %(after_key)s
ORDER BY asset_key
LIMIT %(limit)s;

-- name: neighbours
-- What a narrative may say of other assets: a draft's label, else the published one.
SELECT id, object_type, name, title, acl_id FROM draft WHERE asset_key = ANY(%(keys)s)
UNION ALL
SELECT id, object_type, name, title, acl_id FROM asset
WHERE asset_key = ANY(%(keys)s) AND NOT EXISTS (SELECT FROM draft WHERE draft.asset_key = asset.asset_key);

-- name: set_composed
-- The composed forms of a page of drafts.
UPDATE draft SET composed = given.composed
FROM (SELECT * FROM unnest(%(keys)s::bigint[], %(composed)b)) AS given (asset_key, composed)
WHERE draft.asset_key = given.asset_key;

-- name: wanted_by_drafts
-- The texts that eligible drafts shall have vectors of.
SELECT draft.source, draft.asset_key, decode(chunk.content_hash, 'hex') AS content_hash, chunk.text
FROM draft, jsonb_to_recordset(draft.composed -> 'chunks') AS chunk (content_hash text, text text)
WHERE (draft.composed ->> 'eligible')::boolean;

-- name: wanted_by_entering
-- The published texts of assets that the gate will let in; who is drafted comes in with its draft.
SELECT a.source, a.asset_key, c.content_hash, c.text
FROM asset a JOIN asset_score s USING (asset_key) JOIN {chunk} c USING (asset_key)
WHERE NOT s.eligible AND s.curation_score >= {threshold}
  AND NOT EXISTS (SELECT FROM draft WHERE draft.asset_key = a.asset_key);

-- name: missing_texts
-- How many wanted texts of each asset have no vector yet.
SELECT wanted.source, wanted.asset_key, count(*) AS texts
FROM ({wanted}) AS wanted
WHERE NOT EXISTS (SELECT FROM vector_cache v WHERE v.content_hash = wanted.content_hash)
GROUP BY wanted.source, wanted.asset_key
ORDER BY wanted.source, wanted.asset_key;

-- name: cached_texts
-- How many wanted texts have a vector in the cache already, by source.
SELECT wanted.source, count(*) AS texts
FROM ({wanted}) AS wanted
WHERE EXISTS (SELECT FROM vector_cache v WHERE v.content_hash = wanted.content_hash)
GROUP BY wanted.source;

-- name: texts_to_embed
-- The wanted texts without a vector in a range of a source's keys, each once.
SELECT DISTINCT ON (wanted.content_hash) encode(wanted.content_hash, 'hex') AS content_hash, wanted.text
FROM ({wanted}) AS wanted
WHERE wanted.source = %(source)s AND wanted.asset_key BETWEEN %(first_key)s AND %(last_key)s
  AND NOT EXISTS (SELECT FROM vector_cache v WHERE v.content_hash = wanted.content_hash);

-- name: incoming_vectors_table
-- Staging of one round of vectors, private to the session.
CREATE TEMPORARY TABLE IF NOT EXISTS incoming_vector (LIKE vector_cache) ON COMMIT DELETE ROWS;

-- name: incoming_vectors_copy
-- Columns in the order of the rows that are sent.
COPY incoming_vector (content_hash, embedding) FROM STDIN (FORMAT BINARY);

-- name: add_vectors
-- Fill the cache; a vector that another batch brought meanwhile is kept.
INSERT INTO vector_cache (content_hash, embedding)
SELECT content_hash, embedding FROM incoming_vector
ON CONFLICT DO NOTHING;
