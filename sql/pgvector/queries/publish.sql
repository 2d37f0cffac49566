-- name: draft_sources
-- Whose assets are drafted.
SELECT source, count(*) AS assets FROM draft GROUP BY source ORDER BY source;

-- name: publishable_drafts
-- The next drafts whose every text has its vector.
SELECT draft.asset_key
FROM draft
WHERE draft.source = %(source)s AND draft.composed IS NOT NULL AND draft.asset_key > %(after_key)s
  AND (NOT (draft.composed ->> 'eligible')::boolean OR NOT EXISTS (
        SELECT FROM jsonb_to_recordset(draft.composed -> 'chunks') AS chunk (content_hash text)
        WHERE NOT EXISTS (SELECT FROM vector_cache v WHERE v.content_hash = decode(chunk.content_hash, 'hex'))))
ORDER BY draft.asset_key
LIMIT %(limit)s;

-- name: publish_corpus
-- Corpus totals, by the difference that these drafts make. Before publish_assets: it reads the old lengths.
WITH change AS (
    SELECT count(*) FILTER (WHERE asset.asset_key IS NULL) AS assets,
           -- Lengths are stored in single precision, but must be added up in double.
           sum((draft.composed ->> 'keyword_length')::real::float8 - coalesce(asset.keyword_length, 0)::float8)
               AS total_length
    FROM draft LEFT JOIN asset USING (asset_key)
    WHERE draft.asset_key = ANY(%(keys)s)
)
UPDATE corpus_stat
SET assets = corpus_stat.assets + change.assets, total_length = corpus_stat.total_length + change.total_length
FROM change
WHERE change.assets <> 0 OR change.total_length <> 0;

-- name: publish_assets
-- What search filters and names by.
INSERT INTO asset AS published (asset_key, id, source, object_type, name, title, acl_id, record_digest,
    keyword_length, whole_names, whole_synonyms, tags, terms, domains, owners, data_products, workspaces, shape,
    siblings, location, url)
SELECT d.asset_key, d.id, d.source, d.object_type, d.name, d.title, d.acl_id, d.record_digest,
       c.keyword_length, c.whole_names, c.whole_synonyms, c.tags, c.terms, c.domains, c.owners, c.data_products,
       c.workspaces, c.shape, c.siblings,
       ARRAY(SELECT jsonb_array_elements_text(d.payload -> 'location')), d.payload ->> 'url'
FROM draft d, jsonb_to_record(d.composed) AS c (keyword_length real, whole_names text[],
    whole_synonyms text[], tags text[], terms text[],
    domains text[], owners text[], data_products text[], workspaces text[], shape bigint, siblings bigint[])
WHERE d.asset_key = ANY(%(keys)s)
ON CONFLICT (asset_key) DO UPDATE
SET source = excluded.source, object_type = excluded.object_type, name = excluded.name, title = excluded.title,
    acl_id = excluded.acl_id, record_digest = excluded.record_digest, keyword_length = excluded.keyword_length,
    whole_names = excluded.whole_names, whole_synonyms = excluded.whole_synonyms,
    tags = excluded.tags, terms = excluded.terms, domains = excluded.domains,
    owners = excluded.owners, data_products = excluded.data_products, workspaces = excluded.workspaces,
    shape = excluded.shape, siblings = excluded.siblings, location = excluded.location, url = excluded.url
WHERE (published.*) IS DISTINCT FROM (excluded.*);

-- name: publish_documents
-- Attributes, narrative, and the words that spelling is compared with.
INSERT INTO asset_document AS published (asset_key, payload, narrative, words)
SELECT asset_key, payload, composed ->> 'narrative', ARRAY(SELECT jsonb_object_keys(composed -> 'words'))
FROM draft WHERE asset_key = ANY(%(keys)s)
ON CONFLICT (asset_key) DO UPDATE
SET payload = excluded.payload, narrative = excluded.narrative, words = excluded.words
WHERE (published.payload, published.narrative, published.words)
      IS DISTINCT FROM (excluded.payload, excluded.narrative, excluded.words);

-- name: publish_vocabulary
-- Words that no asset had before. Numbered as they come: readers ask for those after the last one they know.
INSERT INTO vocabulary AS known (word, term)
SELECT new.key, max(new.value)
FROM draft d
CROSS JOIN jsonb_each_text(d.composed -> 'words') AS new
LEFT JOIN vocabulary v ON v.word = new.key
WHERE d.asset_key = ANY(%(keys)s) AND v.term IS DISTINCT FROM new.value
GROUP BY new.key
ON CONFLICT (word) DO UPDATE SET term = excluded.term;

-- name: publish_passages
-- Who passes the gate by these drafts, and why: rules when the score that they made passes by itself (an asset is
-- scored by new rules before it is drafted), else metadata when the new score does, else the threshold. Before
-- publish_scores. Who is published for the first time passes nothing.
INSERT INTO gate_event (asset_key, id, source, object_type, run_id, entered, cause, curation_score_before,
    curation_score_after, threshold_before, threshold_after)
SELECT d.asset_key, d.id, d.source, d.object_type, %(run_id)s, c.eligible,
       CASE WHEN (s.curation_score >= s.threshold) = c.eligible THEN 'rule'
            WHEN (c.curation_score >= s.threshold) = c.eligible THEN 'metadata'
            ELSE 'threshold' END,
       s.gated_score, c.curation_score, s.threshold, c.threshold
FROM draft d JOIN asset_score s USING (asset_key),
     jsonb_to_record(d.composed) AS c (curation_score float8, threshold float8, eligible boolean)
WHERE d.asset_key = ANY(%(keys)s) AND s.eligible <> c.eligible
ORDER BY d.id COLLATE "C";

-- name: publish_scores
-- Signals, scores with their components, and the gate's verdict.
INSERT INTO asset_score AS published (asset_key, signals, certification, certification_expires_at, critical,
    data_quality_percent, governance, governance_score, curation_score, curation, curation_native, rules_digest,
    threshold, eligible, eligibility_reasons, gated_score)
SELECT d.asset_key, c.signals, c.certification, c.certification_expires_at, c.critical, c.data_quality_percent,
       c.governance, c.governance_score, c.curation_score, c.curation, c.curation_native, c.rules_digest,
       c.threshold, c.eligible, c.eligibility_reasons, c.curation_score
FROM draft d, jsonb_to_record(d.composed) AS c (signals jsonb, certification text,
    certification_expires_at timestamptz, critical boolean, data_quality_percent float8, governance jsonb,
    governance_score float8, curation_score float8, curation jsonb, curation_native boolean, rules_digest text,
    threshold float8, eligible boolean, eligibility_reasons text[])
WHERE d.asset_key = ANY(%(keys)s)
ON CONFLICT (asset_key) DO UPDATE
SET signals = excluded.signals, certification = excluded.certification,
    certification_expires_at = excluded.certification_expires_at, critical = excluded.critical,
    data_quality_percent = excluded.data_quality_percent, governance = excluded.governance,
    governance_score = excluded.governance_score, curation_score = excluded.curation_score,
    curation = excluded.curation, curation_native = excluded.curation_native, rules_digest = excluded.rules_digest,
    threshold = excluded.threshold, eligible = excluded.eligible, eligibility_reasons = excluded.eligibility_reasons,
    gated_score = excluded.gated_score
WHERE (published.*) IS DISTINCT FROM (excluded.*);

-- name: publish_term_stats
-- Document frequencies, by the difference that these drafts make. Before publish_postings and drop_postings.
WITH new AS (
    SELECT d.asset_key, t.key COLLATE "C" AS term
    FROM draft d, jsonb_each_text(d.composed -> 'postings') AS t
    WHERE d.asset_key = ANY(%(keys)s)
), old AS (
    SELECT asset_key, term FROM posting WHERE asset_key = ANY(%(keys)s)
), change AS (
    SELECT term, sum(step) AS step
    FROM (SELECT term, 1 AS step FROM new UNION ALL SELECT term, -1 FROM old) AS steps
    GROUP BY term
    HAVING sum(step) <> 0
)
INSERT INTO term_stat AS known (term, assets)
SELECT term, step FROM change
ON CONFLICT (term) DO UPDATE SET assets = known.assets + excluded.assets;

-- name: drop_postings
-- Terms that these drafts no longer hold.
DELETE FROM posting p
USING draft d
WHERE p.asset_key = d.asset_key AND d.asset_key = ANY(%(keys)s) AND NOT (d.composed -> 'postings') ? p.term;

-- name: publish_postings
-- Field-weighted term frequencies, and the length of the asset that they are normalised by. After publish_assets.
INSERT INTO posting AS published (term, asset_key, weight, length)
SELECT t.key, d.asset_key, t.value::real, asset.keyword_length
FROM draft d JOIN asset USING (asset_key), jsonb_each_text(d.composed -> 'postings') AS t
WHERE d.asset_key = ANY(%(keys)s)
ON CONFLICT (term, asset_key) DO UPDATE SET weight = excluded.weight, length = excluded.length
WHERE (published.weight, published.length) IS DISTINCT FROM (excluded.weight, excluded.length);

-- name: drop_chunks
-- Chunks that these drafts no longer hold.
DELETE FROM {chunk} c
USING draft d
WHERE c.asset_key = d.asset_key AND d.asset_key = ANY(%(keys)s)
  AND c.number >= jsonb_array_length(d.composed -> 'chunks');

-- name: drop_embeddings
-- Vectors of chunks that are gone, and all of assets that are not eligible.
DELETE FROM {embedding} e
USING draft d
WHERE e.asset_key = d.asset_key AND d.asset_key = ANY(%(keys)s)
  AND (NOT (d.composed ->> 'eligible')::boolean OR e.number >= jsonb_array_length(d.composed -> 'chunks'));

-- name: publish_embeddings
-- Vectors of new and changed chunks. Before publish_chunks: it compares with the hash that is published.
INSERT INTO {embedding} AS published (asset_key, number, embedding)
SELECT d.asset_key, n.number, v.embedding
FROM draft d
CROSS JOIN jsonb_to_recordset(d.composed -> 'chunks') AS n (number integer, content_hash text)
JOIN vector_cache v ON v.content_hash = decode(n.content_hash, 'hex')
LEFT JOIN {chunk} c ON c.asset_key = d.asset_key AND c.number = n.number
LEFT JOIN {embedding} e ON e.asset_key = d.asset_key AND e.number = n.number
WHERE d.asset_key = ANY(%(keys)s) AND (d.composed ->> 'eligible')::boolean
  AND (e.asset_key IS NULL OR c.content_hash IS DISTINCT FROM v.content_hash)
ON CONFLICT (asset_key, number) DO UPDATE SET embedding = excluded.embedding;

-- name: publish_chunks
-- Texts and hashes.
INSERT INTO {chunk} AS published (asset_key, number, section, text, content_hash)
SELECT d.asset_key, n.number, n.section, n.text, decode(n.content_hash, 'hex')
FROM draft d
CROSS JOIN jsonb_to_recordset(d.composed -> 'chunks') AS n (number integer, section text, text text, content_hash text)
WHERE d.asset_key = ANY(%(keys)s)
ON CONFLICT (asset_key, number) DO UPDATE
SET section = excluded.section, text = excluded.text, content_hash = excluded.content_hash
WHERE (published.section, published.content_hash) IS DISTINCT FROM (excluded.section, excluded.content_hash);

-- name: drop_drafts
-- Published drafts have done their work.
DELETE FROM draft WHERE asset_key = ANY(%(keys)s);
