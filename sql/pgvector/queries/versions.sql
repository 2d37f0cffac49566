-- name: version_of_model
-- The index version of a model, if there is one.
SELECT version, status FROM index_version
WHERE (model_id, model_revision, dimension) = (%(model_id)s, %(model_revision)s, %(dimension)s);

-- name: add_version
-- A new version, being built.
INSERT INTO index_version (version, model_id, model_revision, dimension, status)
SELECT coalesce(max(version), 0) + 1, %(model_id)s, %(model_revision)s, %(dimension)s, 'building' FROM index_version
RETURNING version;

-- name: create_version_tables
-- A version's own pair of tables: narrow vectors, wide texts.
CREATE TABLE {embedding} (
    asset_key bigint NOT NULL REFERENCES asset ON DELETE CASCADE,
    number    integer NOT NULL,
    embedding vector({dimension}) NOT NULL CHECK (vector_norm(embedding) > 0),
    PRIMARY KEY (asset_key, number)
);
ALTER TABLE {embedding} ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE TABLE {chunk} (
    asset_key    bigint NOT NULL REFERENCES asset ON DELETE CASCADE,
    number       integer NOT NULL,
    section      text NOT NULL,
    text         text NOT NULL,
    content_hash bytea NOT NULL,
    PRIMARY KEY (asset_key, number)
);

-- name: embedding_count
-- How many vectors a version holds.
SELECT count(*) AS vectors FROM {embedding};

-- name: ann_index_exists
-- Whether the version has its graph index.
SELECT to_regclass(%(name)s) IS NOT NULL AS present;

-- name: create_ann_index
-- Built once over loaded vectors: inserting into a graph is some hundred times slower than COPY.
CREATE INDEX {ann_index} ON {embedding} USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64);

-- name: retire_active
-- Step one of a promotion.
UPDATE index_version SET status = 'retired' WHERE status = 'active' AND version <> %(version)s;

-- name: promote
-- Step two, in the same transaction.
UPDATE index_version SET status = 'active', promoted_at = now() WHERE version = %(version)s AND status <> 'active';

-- name: analyze_version
-- Statistics of what searches read, for their plans.
ANALYZE asset, asset_score, asset_document, posting, term_stat, {embedding}, {chunk};

-- name: verify_version
-- Counts that must all be zero in a whole index.
SELECT
    (SELECT count(*) FROM asset JOIN asset_score s USING (asset_key)
     WHERE s.eligible AND NOT EXISTS (SELECT FROM {embedding} e WHERE e.asset_key = asset.asset_key))
        AS eligible_without_vector,
    (SELECT count(*) FROM {embedding} e JOIN asset_score s USING (asset_key) WHERE NOT s.eligible)
        AS vectors_of_ineligible,
    (SELECT count(*) FROM {chunk} c JOIN asset_score s USING (asset_key)
     WHERE s.eligible AND NOT EXISTS (SELECT FROM {embedding} e WHERE (e.asset_key, e.number) = (c.asset_key, c.number)))
        AS chunks_without_vector,
    (SELECT count(*) FROM {embedding} e
     WHERE NOT EXISTS (SELECT FROM {chunk} c WHERE (e.asset_key, e.number) = (c.asset_key, c.number)))
        AS vectors_without_chunk,
    (SELECT count(*) FROM asset LEFT JOIN asset_score s USING (asset_key) WHERE s.asset_key IS NULL)
        AS assets_without_score,
    (SELECT abs(c.assets - (SELECT count(*) FROM asset)) FROM corpus_stat c) AS corpus_drift;
