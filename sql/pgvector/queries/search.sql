-- name: corpus
-- The active version, the corpus totals and the age of the data, in one look.
SELECT version.version, version.model_id, version.model_revision, version.dimension,
       corpus.assets, corpus.total_length,
       (SELECT extract(epoch FROM now() - max(finished_at))::float8 FROM refresh_run
        WHERE status IN ('succeeded', 'incomplete') AND NOT dry_run AND kind = 'refresh') AS data_age_seconds
FROM corpus_stat corpus LEFT JOIN index_version version ON version.status = 'active';

-- name: term_frequencies
-- In how many assets each word stands.
SELECT term, assets FROM term_stat WHERE term = ANY(%(terms)s) AND assets > 0;

-- name: acl_since
-- Access lists that were added after the ones already known.
SELECT acl_id, seq, classification, groups, users, denied_groups, denied_users
FROM acl WHERE seq > %(seq)s ORDER BY seq;

-- name: allowed
-- The condition on asset a and its asset_score s that every statement about candidates carries: access first.
a.acl_id = ANY(%(acl_ids)s)
AND (s.eligible OR NOT %(eligible_only)s)
AND (%(object_types)s::text[] IS NULL OR a.object_type = ANY(%(object_types)s))
AND (%(sources)s::text[] IS NULL OR lower(a.source) = ANY(%(sources)s))
AND (%(tags)s::text[] IS NULL OR a.tags && %(tags)s)
AND (%(glossary_terms)s::text[] IS NULL OR a.terms && %(glossary_terms)s)
AND (%(domains)s::text[] IS NULL OR a.domains && %(domains)s)
AND (%(owners)s::text[] IS NULL OR a.owners && %(owners)s)
AND (%(data_products)s::text[] IS NULL OR a.data_products && %(data_products)s)
AND (%(workspaces)s::text[] IS NULL OR a.workspaces && %(workspaces)s)
AND (%(certifications)s::text[] IS NULL OR CASE WHEN s.certification = 'certified' AND s.certification_expires_at <= %(now)s
          THEN 'inactive' ELSE s.certification END = ANY(%(certifications)s))
AND (%(classifications)s::smallint[] IS NULL
     OR (SELECT acl.classification FROM acl WHERE acl.acl_id = a.acl_id) = ANY(%(classifications)s))
AND (%(critical)s::boolean IS NULL OR coalesce(s.critical, false) = %(critical)s)
AND (%(min_curation_score)s::float8 IS NULL OR s.curation_score >= %(min_curation_score)s)
AND (%(min_data_quality)s::float8 IS NULL OR s.data_quality_percent >= %(min_data_quality)s);

-- name: matched_idf
-- What an asset a matches of the query: its weights by group of terms, w, saturated and normalised by its length.
sum(w.idf * w.weight
    / (w.weight + %(saturation)s * (1 - %(length_share)s + %(length_share)s * a.keyword_length / %(mean_length)s)));

-- name: visible_vectors
-- How many vectors the caller may be answered from, counted no further than asked.
SELECT count(*) AS vectors FROM (
    SELECT FROM {embedding} e JOIN asset a USING (asset_key) JOIN asset_score s USING (asset_key)
    WHERE {allowed}
    LIMIT %(count_limit)s
) AS counted;

-- name: vector_hits_exact
-- Nearest assets among all allowed vectors, by best chunk less the discount for many chunks; ties by id.
SELECT a.asset_key
FROM {embedding} e JOIN asset a USING (asset_key) JOIN asset_score s USING (asset_key)
WHERE {allowed}
GROUP BY a.asset_key
ORDER BY min(e.embedding <=> %(vector)s) + %(chunk_discount)s * ln(count(*)) / ln(2), a.id COLLATE "C"
LIMIT %(pool)s

-- name: vector_hits_ann
-- Nearest allowed chunks by the graph index, which goes on searching until the filter let enough through.
SELECT DISTINCT hit.asset_key FROM (
    SELECT e.asset_key
    FROM {embedding} e JOIN asset a USING (asset_key) JOIN asset_score s USING (asset_key)
    WHERE {allowed}
    ORDER BY e.embedding <=> %(vector)s
    LIMIT %(pool)s * 4
) AS hit

-- name: candidates
-- Vector, keyword and whole-name hits, each asset once, with both signals computed exactly for every one of them.
WITH query_term AS MATERIALIZED (
    SELECT * FROM unnest(%(query_terms)s::text[], %(groups)s::integer[], %(idfs)s::float8[], %(discounts)s::float8[],
                         %(rare)s::boolean[]) AS t (term, word, idf, discount, rare)
), vector_hit AS (
    {vector_hits}
), keyword_hit AS (
    SELECT a.asset_key
    FROM (
        SELECT p.asset_key, q.idf, sum(q.discount * p.weight) AS weight
        FROM query_term q JOIN posting p USING (term)
        WHERE q.rare
        GROUP BY p.asset_key, q.word, q.idf
    ) AS w
    JOIN asset a USING (asset_key) JOIN asset_score s USING (asset_key)
    WHERE {allowed}
    GROUP BY a.asset_key
    ORDER BY {matched_idf} DESC, a.id COLLATE "C"
    LIMIT %(pool)s
), name_hit AS (
    SELECT a.asset_key FROM asset a JOIN asset_score s USING (asset_key)
    WHERE (a.whole_names && %(whole_query)s OR a.whole_synonyms && %(whole_query)s) AND {allowed}
    ORDER BY NOT a.whole_names && %(whole_query)s, a.id COLLATE "C" LIMIT %(pool)s
), hit AS (
    SELECT asset_key FROM vector_hit UNION SELECT asset_key FROM keyword_hit UNION SELECT asset_key FROM name_hit
)
SELECT a.asset_key, a.id, a.whole_names && %(whole_query)s AS named,
       a.whole_synonyms && %(whole_query)s AS called, a.shape, a.siblings,
       s.signals, s.curation_score, s.eligible,
       nearest.number AS chunk_number, 1 - nearest.distance AS best_cosine, coalesce(chunks.count, 0) AS chunk_count,
       coalesce(keyword.matched_idf, 0) AS matched_idf
FROM hit
JOIN asset a USING (asset_key)
JOIN asset_score s USING (asset_key)
LEFT JOIN LATERAL (
    SELECT e.number, e.embedding <=> %(vector)s AS distance FROM {embedding} e
    WHERE e.asset_key = hit.asset_key ORDER BY distance, e.number LIMIT 1
) AS nearest ON true
LEFT JOIN LATERAL (SELECT count(*) FROM {embedding} e WHERE e.asset_key = hit.asset_key) AS chunks ON true
LEFT JOIN LATERAL (
    SELECT {matched_idf} AS matched_idf
    FROM (
        SELECT q.idf, sum(q.discount * p.weight) AS weight
        FROM query_term q JOIN posting p ON p.term = q.term AND p.asset_key = hit.asset_key
        GROUP BY q.word, q.idf
    ) AS w
) AS keyword ON true;

-- name: browse
-- Assets without a question, by name.
SELECT a.asset_key, a.id, false AS named, false AS called, a.shape, a.siblings, s.signals, s.curation_score, s.eligible,
       NULL::integer AS chunk_number, NULL::float8 AS best_cosine, 0 AS chunk_count, 0::float8 AS matched_idf
FROM asset a JOIN asset_score s USING (asset_key)
WHERE {allowed}
ORDER BY lower(a.name), a.id COLLATE "C"
LIMIT %(pool)s;

-- name: details
-- What is shown of the results, checked against the access lists once more.
SELECT a.asset_key, a.object_type, a.name, a.title, s.eligibility_reasons, a.location, a.url,
       c.section AS matched_section, c.text AS matched_text
FROM unnest(%(keys)s::bigint[], %(chunk_numbers)s::integer[]) AS wanted (asset_key, number)
JOIN asset a USING (asset_key)
JOIN asset_score s USING (asset_key)
LEFT JOIN {chunk} c ON c.asset_key = wanted.asset_key AND c.number = wanted.number
WHERE a.acl_id = ANY(%(acl_ids)s);

-- name: asset_by_id
-- One asset in full, if the caller may see it.
SELECT a.asset_key, a.id, d.payload, d.narrative, s.signals, s.curation_score, s.curation, s.eligible,
       s.eligibility_reasons, acl.classification
FROM asset a JOIN asset_document d USING (asset_key) JOIN asset_score s USING (asset_key) JOIN acl USING (acl_id)
WHERE a.id = %(id)s AND a.acl_id = ANY(%(acl_ids)s);

-- name: chunks_of_asset
-- Its chunks in order.
SELECT number, section, text FROM {chunk} WHERE asset_key = %(asset_key)s ORDER BY number;

-- name: visible_of
-- Which of these ids the caller may see.
SELECT id FROM asset WHERE asset_key = ANY(%(keys)s) AND acl_id = ANY(%(acl_ids)s);

-- name: known_of
-- Which of these ids are assets at all.
SELECT id FROM asset WHERE asset_key = ANY(%(keys)s);
