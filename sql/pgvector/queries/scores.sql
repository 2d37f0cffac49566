-- name: threshold
-- The threshold of asset (or draft) a: its source's, else its object type's, else the default.
coalesce((%(threshold_by_source)s ->> a.source)::float8, (%(threshold_by_type)s ->> a.object_type)::float8,
         %(threshold_default)s);

-- name: active_version
-- The version that readers are answered from.
SELECT version, model_id, model_revision, dimension FROM index_version WHERE status = 'active';

-- name: outdated_scores
-- The next published assets that were scored by other rules.
SELECT s.asset_key, a.source, d.payload, s.signals
FROM asset_score s JOIN asset a USING (asset_key) JOIN asset_document d USING (asset_key)
WHERE s.rules_digest IS DISTINCT FROM %(rules_digest)s AND s.asset_key > %(after_key)s
ORDER BY s.asset_key
LIMIT %(limit)s;

-- name: rescored
-- The two scores of a page of published assets, as they are given.
SELECT * FROM unnest(%(keys)s::bigint[], %(curation_scores)s::float8[], %(governance_scores)s::float8[])
    AS given (asset_key, curation_score, governance_score);

-- name: set_scores
-- Scores by other rules than before. The verdict stays as it was: it is the gate's to change.
UPDATE asset_score s
SET signals = n.signals, certification = n.certification, certification_expires_at = n.certification_expires_at,
    critical = n.critical, data_quality_percent = n.data_quality_percent, governance = n.governance,
    governance_score = n.governance_score, curation_score = n.curation_score, curation = n.curation,
    curation_native = n.curation_native, rules_digest = n.rules_digest
FROM (SELECT * FROM unnest(%(keys)s::bigint[], %(scores)b::jsonb[])) AS given (asset_key, scores),
     jsonb_to_record(given.scores) AS n (signals jsonb, certification text, certification_expires_at timestamptz,
        critical boolean, data_quality_percent float8, governance jsonb, governance_score float8,
        curation_score float8, curation jsonb, curation_native boolean, rules_digest text)
WHERE given.asset_key = s.asset_key;

-- name: redraft
-- Published assets whose narrative has to say something else are drafted again. One that is drafted anyway is not.
INSERT INTO draft (asset_key, id, source, object_type, name, title, acl_id, record_digest, payload)
SELECT a.asset_key, a.id, a.source, a.object_type, a.name, a.title, a.acl_id, a.record_digest, d.payload
FROM asset a JOIN asset_document d USING (asset_key)
WHERE a.asset_key = ANY(%(keys)s)
ON CONFLICT (asset_key) DO NOTHING;

-- name: recompose_drafts
-- What an earlier run composed by other rules or thresholds has to be composed again.
UPDATE draft a SET composed = NULL
WHERE a.composed IS NOT NULL
  AND (a.composed ->> 'rules_digest' IS DISTINCT FROM %(rules_digest)s
       OR (a.composed ->> 'threshold')::float8 IS DISTINCT FROM {threshold});

-- name: standing_verdicts
-- Every published asset as the gate knows it, with what it says where it was scored by other rules.
SELECT a.source, a.object_type, s.curation_score, s.eligible, d.payload
FROM asset a JOIN asset_score s USING (asset_key)
LEFT JOIN asset_document d
       ON d.asset_key = a.asset_key AND s.rules_digest IS DISTINCT FROM %(rules_digest)s;

-- name: due_verdicts
-- The next published assets whose verdict is not what score and threshold say. Who shall come in and misses a vector
-- has to wait for it.
SELECT a.asset_key, a.source, a.object_type, s.curation_score
FROM asset a JOIN asset_score s USING (asset_key)
WHERE a.asset_key > %(after_key)s
  AND (s.threshold, s.eligible, s.gated_score)
      IS DISTINCT FROM ({threshold}, s.curation_score >= {threshold}, s.curation_score)
  AND (s.eligible OR s.curation_score < {threshold} OR NOT EXISTS (
        SELECT FROM {chunk} c WHERE c.asset_key = a.asset_key
        AND NOT EXISTS (SELECT FROM vector_cache v WHERE v.content_hash = c.content_hash)))
ORDER BY a.asset_key
LIMIT %(limit)s;

-- name: note_passages
-- Who passes the gate by these verdicts, and why: rules when the score that they made passes by itself, else the
-- threshold. Before set_verdicts.
INSERT INTO gate_event (asset_key, id, source, object_type, run_id, entered, cause, curation_score_before,
    curation_score_after, threshold_before, threshold_after)
SELECT a.asset_key, a.id, a.source, a.object_type, %(run_id)s, given.eligible,
       CASE WHEN (s.curation_score >= s.threshold) = given.eligible THEN 'rule' ELSE 'threshold' END,
       s.gated_score, s.curation_score, s.threshold, given.threshold
FROM unnest(%(keys)s::bigint[], %(thresholds)s::float8[], %(eligible)s::boolean[])
     AS given (asset_key, threshold, eligible)
JOIN asset a USING (asset_key)
JOIN asset_score s USING (asset_key)
WHERE s.eligible <> given.eligible
ORDER BY a.id COLLATE "C";

-- name: drop_vectors
-- Who leaves loses its vectors; texts and postings stay.
DELETE FROM {embedding} WHERE asset_key = ANY(%(leaving)s);

-- name: restore_vectors
-- Who enters gets its vectors from the cache. Before set_verdicts: who is in has them.
INSERT INTO {embedding} (asset_key, number, embedding)
SELECT c.asset_key, c.number, v.embedding
FROM {chunk} c JOIN vector_cache v USING (content_hash) JOIN asset_score s USING (asset_key)
WHERE c.asset_key = ANY(%(entering)s) AND NOT s.eligible
ON CONFLICT DO NOTHING;

-- name: set_verdicts
-- The gate's verdicts on the present curation scores.
UPDATE asset_score s
SET threshold = given.threshold, eligible = given.eligible, gated_score = s.curation_score,
    eligibility_reasons = ARRAY(SELECT jsonb_array_elements_text(given.reasons))
FROM unnest(%(keys)s::bigint[], %(thresholds)s::float8[], %(eligible)s::boolean[], %(reasons)s::jsonb[])
     AS given (asset_key, threshold, eligible, reasons)
WHERE given.asset_key = s.asset_key;
