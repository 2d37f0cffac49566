-- name: published_scores
-- The scores that a page of drafts is about to bring.
SELECT d.asset_key, n.curation_score, n.governance_score
FROM draft d, jsonb_to_record(d.composed) AS n (curation_score float8, governance_score float8)
WHERE d.asset_key = ANY(%(keys)s);

-- name: note_movers
-- The largest changes of a page, kept with those of the pages before. Before the scores are written.
INSERT INTO score_mover AS known (run_id, score_kind, asset_key, cause, score_before, score_after)
SELECT %(run_id)s, ranked.kind, ranked.asset_key, %(cause)s, ranked.score_before, ranked.score_after
FROM (
    SELECT s.asset_key, moved.*,
           row_number() OVER (PARTITION BY moved.kind
                              ORDER BY abs(moved.score_after - moved.score_before) DESC, s.asset_key) AS place
    FROM asset_score s
    JOIN ({new_scores}) AS n USING (asset_key)
    CROSS JOIN LATERAL (VALUES ('curation', s.curation_score, n.curation_score),
                               ('governance', s.governance_score, n.governance_score))
               AS moved (kind, score_before, score_after)
    WHERE moved.score_before <> moved.score_after
) AS ranked
WHERE ranked.place <= %(movers_kept)s
ON CONFLICT (run_id, score_kind, asset_key, cause) DO UPDATE SET score_after = excluded.score_after;

-- name: trim_movers
-- Only the largest changes of a run are kept.
DELETE FROM score_mover AS mover
USING (
    SELECT score_kind, asset_key, cause,
           row_number() OVER (PARTITION BY score_kind
                              ORDER BY abs(score_after - score_before) DESC, asset_key, cause) AS place
    FROM score_mover WHERE run_id = %(run_id)s
) AS ranked
WHERE mover.run_id = %(run_id)s
  AND (mover.score_kind, mover.asset_key, mover.cause) = (ranked.score_kind, ranked.asset_key, ranked.cause)
  AND ranked.place > %(movers_kept)s;

-- name: histogram_now
-- How many assets have scores in each tenth of the scale; the top of the scale counts to the last tenth.
SELECT kind.name AS score_kind, bucket.number AS bucket, coalesce(counted.assets, 0) AS assets
FROM (VALUES ('curation'), ('governance')) AS kind (name)
CROSS JOIN generate_series(0, 9) AS bucket (number)
LEFT JOIN (
    SELECT tenth.kind, least(9, tenth.number - 1) AS bucket, count(*) AS assets
    FROM asset_score s
    CROSS JOIN LATERAL (VALUES ('curation', width_bucket(s.curation_score, 0, 100, 10)),
                               ('governance', width_bucket(s.governance_score, 0, 1, 10))) AS tenth (kind, number)
    GROUP BY tenth.kind, least(9, tenth.number - 1)
) AS counted ON (counted.kind, counted.bucket) = (kind.name, bucket.number);

-- name: histogram_latest
-- The histogram that is in force, and whose it is.
SELECT score_kind, bucket, assets, run_id, finished_at
FROM score_histogram JOIN refresh_run USING (run_id)
WHERE run_id = (SELECT run_id FROM score_histogram JOIN refresh_run USING (run_id) ORDER BY started_at DESC LIMIT 1)
ORDER BY score_kind, bucket;

-- name: add_histogram
-- A new histogram, when the run moved a score or the one in force is no longer true.
WITH now AS ({histogram_now}), latest AS ({histogram_latest})
INSERT INTO score_histogram AS known (run_id, score_kind, bucket, assets)
SELECT %(run_id)s, score_kind, bucket, assets FROM now
WHERE EXISTS (SELECT FROM score_mover WHERE run_id = %(run_id)s)
   OR EXISTS (SELECT score_kind, bucket, assets FROM now EXCEPT SELECT score_kind, bucket, assets FROM latest)
ON CONFLICT (run_id, score_kind, bucket) DO UPDATE SET assets = excluded.assets;

-- name: movers
-- The largest changes of a run, of assets that the caller may see.
SELECT mover.score_kind, a.id, a.name, a.object_type, mover.cause, mover.score_before, mover.score_after
FROM score_mover mover JOIN asset a USING (asset_key)
WHERE mover.run_id = %(run_id)s AND a.acl_id = ANY(%(acl_ids)s)
ORDER BY mover.score_kind, abs(mover.score_after - mover.score_before) DESC, a.id COLLATE "C", mover.cause;

-- name: gate_events
-- The latest passages through the gate, newest first.
SELECT id, source, object_type, happened_at, run_id, entered, cause, curation_score_before, curation_score_after,
       threshold_before, threshold_after
FROM gate_event
ORDER BY event_id DESC
LIMIT %(limit)s;

-- name: gate_changes
-- How many assets passed the gate in a run, by source and type.
SELECT source, object_type, count(*) FILTER (WHERE NOT entered) AS leaving, count(*) FILTER (WHERE entered) AS entering
FROM gate_event
WHERE run_id = %(run_id)s
GROUP BY source, object_type
ORDER BY source, object_type;
