-- name: look_up
-- In how many assets each term stands and whether the caller may see one of them; and the glossary terms, of those
-- that the caller may see, that are called one of the phrases. One look for both.
SELECT f.term, f.assets,
       EXISTS (SELECT FROM posting p JOIN asset a USING (asset_key)
               WHERE p.term = f.term AND a.acl_id = ANY(%(acl_ids)s)) AS visible,
       NULL::text[] AS names
FROM term_stat f
WHERE f.term = ANY(%(terms)s) AND f.assets > 0
UNION ALL
SELECT NULL, NULL, NULL, called.names
FROM (
    SELECT array_remove(ARRAY[a.name, a.title], NULL) || a.whole_synonyms AS names
    FROM asset a
    WHERE (a.whole_names && %(phrases)s::text[] OR a.whole_synonyms && %(phrases)s::text[])
      AND a.object_type = 'term' AND a.acl_id = ANY(%(acl_ids)s)
    ORDER BY a.id COLLATE "C"
    LIMIT %(limit)s
) AS called;

-- name: vocabulary_since
-- Words that were added after the ones already known.
SELECT seq, word, term FROM vocabulary WHERE seq > %(seq)s ORDER BY seq;

-- name: visible_words
-- Which of these words stand in an asset that the caller may see.
SELECT wanted.word
FROM unnest(%(words)s::text[], %(terms)s::text[]) AS wanted (word, term)
WHERE EXISTS (
    SELECT FROM posting p JOIN asset a USING (asset_key) JOIN asset_document d USING (asset_key)
    WHERE p.term = wanted.term AND a.acl_id = ANY(%(acl_ids)s) AND wanted.word = ANY(d.words));
