-- name: seen_assets
-- How many assets the caller may see, counted no further than asked.
SELECT count(*) AS seen
FROM (SELECT FROM asset WHERE acl_id = ANY(%(acl_ids)s::bigint[]) LIMIT %(count_limit)s) AS counted;

-- name: open_assets
-- The assets that the caller may see, where they are few: most that have a common word are hidden then, and to look at
-- one after the other until one is seen would take as long as there are hidden ones.
WITH open_asset AS MATERIALIZED (SELECT asset_key FROM asset WHERE acl_id = ANY(%(acl_ids)s::bigint[]))

-- name: term_seen_among_few
-- Whether one of them has the term f: by those that are seen, or by those that have the term, whichever are fewer.
CASE WHEN f.assets > %(seen)s
     THEN EXISTS (SELECT FROM open_asset o CROSS JOIN LATERAL (
                      SELECT FROM posting p WHERE p.term = f.term AND p.asset_key = o.asset_key OFFSET 0) AS said)
     -- IS TRUE keeps this a look into a table that is hashed once, for all terms.
     ELSE EXISTS (SELECT FROM posting p
                  WHERE p.term = f.term AND (p.asset_key IN (SELECT asset_key FROM open_asset)) IS TRUE)
END

-- name: term_seen_among_many
-- The same, where an asset that is seen is soon met.
EXISTS (SELECT FROM posting p JOIN asset a USING (asset_key)
        WHERE p.term = f.term AND a.acl_id = ANY(%(acl_ids)s::bigint[]))

-- name: word_seen_among_few
-- As `term_seen_among_few`, of the very word.
CASE WHEN f.assets > %(seen)s
     THEN EXISTS (SELECT FROM open_asset o CROSS JOIN LATERAL (
                      SELECT FROM posting p WHERE p.term = f.term AND p.asset_key = o.asset_key OFFSET 0) AS said
                  JOIN asset_document d ON d.asset_key = o.asset_key AND wanted.word = ANY(d.words))
     ELSE EXISTS (SELECT FROM posting p JOIN asset_document d USING (asset_key)
                  WHERE p.term = f.term AND (p.asset_key IN (SELECT asset_key FROM open_asset)) IS TRUE
                    AND wanted.word = ANY(d.words))
END

-- name: word_seen_among_many
-- As `term_seen_among_many`, of the very word.
EXISTS (SELECT FROM posting p JOIN asset a USING (asset_key) JOIN asset_document d USING (asset_key)
        WHERE p.term = f.term AND a.acl_id = ANY(%(acl_ids)s::bigint[]) AND wanted.word = ANY(d.words))

-- name: look_up
-- In how many assets each term stands and whether the caller may see one of them; and the glossary terms, of those
-- that the caller may see, that are called one of the phrases. One look for both.
{open_assets}
SELECT f.term, f.assets, {seen} AS visible, NULL::text[] AS names
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
{open_assets}
SELECT wanted.word
FROM unnest(%(words)s::text[], %(terms)s::text[]) AS wanted (word, term) JOIN term_stat f USING (term)
WHERE {seen};
