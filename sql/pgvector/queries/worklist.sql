-- name: below_threshold
-- The condition on asset a and its asset_score s that every statement about the work list carries: access first.
a.acl_id = ANY(%(acl_ids)s)
AND s.curation_score < s.threshold
AND (%(object_types)s::text[] IS NULL OR a.object_type = ANY(%(object_types)s))
AND (%(sources)s::text[] IS NULL OR lower(a.source) = ANY(%(sources)s))
AND (%(owners)s::text[] IS NULL OR a.owners && %(owners)s);

-- name: worklist_page
-- The next assets below their threshold, fewest points missing first. Documents are read only of those.
WITH nearest AS (
    SELECT a.asset_key, a.id, a.source, a.object_type, a.name, a.title,
           s.threshold - s.curation_score AS points_missing
    FROM asset a JOIN asset_score s USING (asset_key)
    WHERE {below_threshold}
      AND (%(after_points)s::float8 IS NULL
           OR (s.threshold - s.curation_score, a.id COLLATE "C") > (%(after_points)s::float8, %(after_id)s::text))
    ORDER BY s.threshold - s.curation_score, a.id COLLATE "C"
    LIMIT %(limit)s
)
SELECT nearest.*, d.payload ->> 'url' AS url, d.payload -> 'governance_roles' AS roles,
       s.signals, s.curation_score, s.curation, s.curation_native, s.threshold
FROM nearest JOIN asset_score s USING (asset_key) JOIN asset_document d USING (asset_key)
ORDER BY nearest.points_missing, nearest.id COLLATE "C";

-- name: worklist_by_roles
-- The whole work list added up by governance roles, of which there are few different sets.
SELECT d.payload -> 'governance_roles' AS roles, count(*) AS assets,
       sum(s.threshold - s.curation_score) AS points_missing
FROM asset a JOIN asset_score s USING (asset_key) JOIN asset_document d USING (asset_key)
WHERE {below_threshold}
GROUP BY d.payload -> 'governance_roles';

-- name: payloads_of_source
-- What the assets say that a source lists or adds to, overlays merged in.
SELECT d.payload
FROM record r JOIN asset_document d USING (asset_key)
WHERE r.source = %(source)s
ORDER BY r.asset_key;
