-- name: look_up
-- In how many assets each term stands and whether the caller may see one of them; and the glossary terms, of those
-- that the caller may see, that are called one of the phrases. One look for both.
SELECT f.term, f.assets,
       EXISTS (SELECT FROM posting p JOIN asset a USING (asset_key)
               WHERE p.term = f.term AND a.acl_id = ANY(%(acl_ids)s::bigint[])) AS visible,
       NULL::text[] AS names
FROM term_stat f
WHERE f.term = ANY(%(terms)s) AND f.assets > 0
UNION ALL
SELECT NULL, NULL, NULL, called.names
FROM (
    SELECT DISTINCT ON (a.id COLLATE "C") a.names
    FROM unnest(%(phrases)s::text[]) AS said (phrase)
    -- Phrase by phrase: how many assets are called one of many is overestimated so far that all would be read.
    CROSS JOIN LATERAL (
        SELECT asset.id, asset.object_type, asset.acl_id,
               array_remove(ARRAY[asset.name, asset.title], NULL) || asset.whole_synonyms AS names
        FROM asset
        WHERE asset.whole_names && ARRAY[said.phrase] OR asset.whole_synonyms && ARRAY[said.phrase]
        OFFSET 0
    ) AS a
    WHERE a.object_type = 'term' AND a.acl_id = ANY(%(acl_ids)s::bigint[])
    ORDER BY a.id COLLATE "C"
    LIMIT %(limit)s
) AS called;

-- name: vocabulary_since
-- The next words that were added after the ones already known.
SELECT seq, word, term FROM vocabulary WHERE seq > %(seq)s ORDER BY seq LIMIT %(limit)s;

-- name: visible_words
-- Which of these words stand in an asset that the caller may see.
SELECT wanted.word
FROM unnest(%(words)s::text[], %(terms)s::text[]) AS wanted (word, term)
WHERE EXISTS (
    SELECT FROM posting p JOIN asset a USING (asset_key) JOIN asset_document d USING (asset_key)
    WHERE p.term = wanted.term AND a.acl_id = ANY(%(acl_ids)s::bigint[]) AND wanted.word = ANY(d.words));
