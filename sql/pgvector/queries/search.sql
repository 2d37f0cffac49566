-- name: corpus
-- The active version, the corpus totals and the age of the data, in one look.
SELECT version.version, version.model_id, version.model_revision, version.dimension,
       corpus.assets, corpus.total_length,
       (SELECT extract(epoch FROM now() - max(finished_at))::float8 FROM refresh_run
        WHERE status IN ('succeeded', 'incomplete') AND NOT dry_run AND kind = 'refresh') AS data_age_seconds
FROM corpus_stat corpus LEFT JOIN index_version version ON version.status = 'active';

-- name: acl_since
-- Access lists that were added after the ones already known.
SELECT acl_id, seq, classification, groups, users, denied_groups, denied_users
FROM acl WHERE seq > %(seq)s ORDER BY seq;

-- name: acl_ids
-- Access first: every statement about candidates asks it of asset a, and of a and its asset_score s whichever of the
-- following conditions the question brings.
a.acl_id = ANY(%(acl_ids)s::bigint[])

-- name: eligible_only
-- Those that passed the gate.
s.eligible

-- name: object_types
-- Of one of these types.
a.object_type = ANY(%(object_types)s)

-- name: sources
-- Of one of these sources, casefolded like all that follows.
lower(a.source) = ANY(%(sources)s)

-- name: tags
-- With one of these tags; a tag stands for its children by what is stored.
a.tags && %(tags)s

-- name: glossary_terms
-- Linked to one of these glossary terms, by name or id.
a.terms && %(glossary_terms)s

-- name: domains
-- In one of these domains.
a.domains && %(domains)s

-- name: owners
-- Whom one of these owns, stewards or keeps.
a.owners && %(owners)s

-- name: data_products
-- In one of these data products.
a.data_products && %(data_products)s

-- name: workspaces
-- In one of these workspaces: a filter, never a permission.
a.workspaces && %(workspaces)s

-- name: certifications
-- As of the question: a certification that has expired is inactive.
CASE WHEN s.certification = 'certified' AND s.certification_expires_at <= %(now)s THEN 'inactive'
     ELSE s.certification END = ANY(%(certifications)s)

-- name: classifications
-- Classified as one of these levels.
(SELECT acl.classification FROM acl WHERE acl.acl_id = a.acl_id) = ANY(%(classifications)s)

-- name: critical
-- Critical data elements, or those that are none.
coalesce(s.critical, false) = %(critical)s

-- name: min_curation_score
-- At least so complete, 0..100.
s.curation_score >= %(min_curation_score)s

-- name: min_data_quality
-- At least of this quality, 0..100; unknown quality is none.
s.data_quality_percent >= %(min_data_quality)s

-- name: sampled_vectors
-- Of the vectors with the least keys, those that the caller may be answered from. Keys are digests: whoever may see what,
-- these are a fair sample. Counting as far as `visible_vectors` does reads a page or two for each asset.
WITH sample AS MATERIALIZED (SELECT asset_key FROM {embedding} ORDER BY asset_key LIMIT %(sample_limit)s)
SELECT (SELECT count(*) FROM sample) AS sampled,
       count(*) AS visible,
       count(DISTINCT asset_key) AS visible_assets,
       (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(%(embedding_table)s)) AS stored
FROM sample JOIN asset a USING (asset_key) JOIN asset_score s USING (asset_key)
WHERE {allowed};

-- name: visible_vectors
-- How many vectors the caller may be answered from, counted no further than asked, and about how many there are.
SELECT count(*) AS visible,
       (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(%(embedding_table)s)) AS stored
FROM (
    SELECT FROM {embedding} e JOIN asset a USING (asset_key) JOIN asset_score s USING (asset_key)
    WHERE {allowed}
    LIMIT %(count_limit)s
) AS counted;

-- name: allowed_assets
-- The assets that the caller may be answered from, where they are not too many to look at each.
allowed_asset AS MATERIALIZED (
    SELECT a.asset_key, a.id FROM asset a JOIN asset_score s USING (asset_key) WHERE {allowed}
),

-- name: vector_hits_exact
-- Nearest assets among all allowed vectors, by the similarity that ranks them; ties by id.
SELECT asset_key, count(*) AS chunks
FROM (
    -- Each distance is computed once, not once for each aggregate.
    SELECT asset_key, a.id, e.embedding <=> %(vector)s AS distance
    FROM allowed_asset a JOIN {embedding} e USING (asset_key)
    OFFSET 0
) AS near
GROUP BY asset_key, id
ORDER BY %(best_chunk_share)s * min(distance) + (1 - %(best_chunk_share)s) * avg(distance), id COLLATE "C"
LIMIT %(pool)s

-- name: vector_hits_graph
-- Nearest allowed chunks by the graph index, which goes on searching until the filter let enough through.
SELECT near.asset_key, count(*) AS chunks FROM (
    SELECT e.asset_key
    FROM {embedding} e JOIN asset a USING (asset_key) JOIN asset_score s USING (asset_key)
    WHERE {allowed}
    ORDER BY e.embedding <=> %(vector)s
    LIMIT %(chunk_limit)s
) AS near
GROUP BY near.asset_key

-- name: group_weights
-- By asset and group of terms, what its postings p of the query's terms q weigh together.
SELECT p.asset_key, p.length, q.idf, sum(q.discount * p.weight) AS weight
FROM query_term q JOIN posting p USING (term)

-- name: matched_idf
-- What an asset matches of the query: its weights by group, w, saturated and normalised by its length.
sum(w.idf * w.weight
    / (w.weight + %(saturation)s * (1 - %(length_share)s + %(length_share)s * w.length / %(mean_length)s)))

-- name: keyword_hits_walked
-- The best matches of the rare terms, of whoever may see them, walked down until enough are allowed; ties by id.
SELECT ranked.asset_key
FROM (
    SELECT w.asset_key, {matched_idf} AS matched_idf
    FROM ({group_weights} WHERE q.rare GROUP BY p.asset_key, p.length, q.word, q.idf) AS w
    GROUP BY w.asset_key
    ORDER BY matched_idf DESC
) AS ranked
CROSS JOIN LATERAL (
    -- A subquery that stays one: it is asked row by row, not joined as a whole.
    SELECT a.id FROM asset a JOIN asset_score s USING (asset_key)
    WHERE a.asset_key = ranked.asset_key AND {allowed}
    OFFSET 0
) AS open
ORDER BY ranked.matched_idf DESC, open.id COLLATE "C"
LIMIT %(pool)s

-- name: keyword_hits_of_few
-- The best matches among few allowed assets: here every term proposes; ties by id.
SELECT asset_key
FROM (
    {group_weights} WHERE p.asset_key IN (SELECT asset_key FROM allowed_asset)
    GROUP BY p.asset_key, p.length, q.word, q.idf
) AS w
JOIN allowed_asset a USING (asset_key)
GROUP BY asset_key, a.id
ORDER BY {matched_idf} DESC, a.id COLLATE "C"
LIMIT %(pool)s

-- name: candidates
-- Vector, keyword and whole-name hits, each asset once, with both signals computed exactly for every one of them.
WITH query_term AS MATERIALIZED (
    SELECT * FROM unnest(%(query_terms)s::text[], %(groups)s::integer[], %(idfs)s::float8[], %(discounts)s::float8[],
                         %(rare)s::boolean[]) AS t (term, word, idf, discount, rare)
), {allowed_assets} vector_hit AS MATERIALIZED (
    {vector_hits}
), keyword_hit AS (
    {keyword_hits}
), name_hit AS (
    SELECT a.asset_key FROM asset a JOIN asset_score s USING (asset_key)
    WHERE (a.whole_names && %(whole_query)s OR a.whole_synonyms && %(whole_query)s) AND {allowed}
    ORDER BY NOT a.whole_names && %(whole_query)s, a.id COLLATE "C" LIMIT %(pool)s
), hit AS (
    SELECT asset_key FROM vector_hit UNION SELECT asset_key FROM keyword_hit UNION SELECT asset_key FROM name_hit
)
SELECT a.asset_key, a.id, a.whole_names && %(whole_query)s AS named,
       a.whole_synonyms && %(whole_query)s AS called, a.shape, a.siblings,
       nearest.number AS chunk_number, 1 - nearest.distance AS best_cosine, 1 - nearest.mean_distance AS mean_cosine,
       coalesce(keyword.matched_idf, 0) AS matched_idf,
       (SELECT count(*) FROM vector_hit) AS hit_assets, (SELECT sum(chunks) FROM vector_hit) AS hit_chunks
FROM hit
JOIN asset a USING (asset_key)
LEFT JOIN LATERAL (
    SELECT number, distance, avg(distance) OVER () AS mean_distance FROM (
        SELECT e.number, e.embedding <=> %(vector)s AS distance FROM {embedding} e WHERE e.asset_key = hit.asset_key
    ) AS chunk
    ORDER BY distance, number LIMIT 1
) AS nearest ON true
LEFT JOIN LATERAL (
    SELECT {matched_idf} AS matched_idf
    FROM ({group_weights} WHERE p.asset_key = hit.asset_key GROUP BY p.asset_key, p.length, q.word, q.idf) AS w
) AS keyword ON true;

-- name: browse
-- Assets without a question, by name.
SELECT a.asset_key, a.id, false AS named, false AS called, a.shape, a.siblings,
       NULL::integer AS chunk_number, NULL::float8 AS best_cosine, NULL::float8 AS mean_cosine,
       0::float8 AS matched_idf
FROM asset a JOIN asset_score s USING (asset_key)
WHERE {allowed}
ORDER BY lower(a.name), a.id COLLATE "C"
LIMIT %(pool)s;

-- name: details
-- What governs and shows the candidates that are kept, checked against the access lists once more.
SELECT a.asset_key, a.object_type, a.name, a.title, a.location, a.url,
       s.signals, s.curation_score, s.eligible, s.eligibility_reasons,
       c.section AS matched_section, c.text AS matched_text
FROM unnest(%(keys)s::bigint[], %(chunk_numbers)s::integer[]) AS wanted (asset_key, number)
JOIN asset a USING (asset_key)
JOIN asset_score s USING (asset_key)
LEFT JOIN {chunk} c ON c.asset_key = wanted.asset_key AND c.number = wanted.number
WHERE a.acl_id = ANY(%(acl_ids)s::bigint[]);

-- name: asset_by_id
-- One asset in full, if the caller may see it.
SELECT a.asset_key, a.id, d.payload, d.narrative, s.signals, s.curation_score, s.curation, s.eligible,
       s.eligibility_reasons, acl.classification
FROM asset a JOIN asset_document d USING (asset_key) JOIN asset_score s USING (asset_key) JOIN acl USING (acl_id)
WHERE a.id = %(id)s AND a.acl_id = ANY(%(acl_ids)s::bigint[]);

-- name: chunks_of_asset
-- Its chunks in order.
SELECT number, section, text FROM {chunk} WHERE asset_key = %(asset_key)s ORDER BY number;

-- name: visible_of
-- Which of these ids the caller may see.
SELECT id FROM asset WHERE asset_key = ANY(%(keys)s) AND acl_id = ANY(%(acl_ids)s::bigint[]);

-- name: known_of
-- Which of these ids are assets at all.
SELECT id FROM asset WHERE asset_key = ANY(%(keys)s);
