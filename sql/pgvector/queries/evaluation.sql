-- name: golden_eligible
-- Those of the ids that are published, and whether the gate lets them through.
SELECT a.id, s.eligible FROM asset a JOIN asset_score s USING (asset_key) WHERE a.asset_key = ANY(%(keys)s);

-- name: golden_baselines
-- What these queries are held against.
SELECT query_digest, ndcg, gold_ranks, top FROM golden_baseline WHERE query_digest = ANY(%(digests)s);

-- name: golden_add
-- A run, with the model of its index version and the run that had published last.
INSERT INTO golden_evaluation (evaluation_id, evaluated_at, index_version, model_id, run_id, question_set, status,
                               measures, compared, ndcg_before, ndcg_after, fallen)
SELECT %(evaluation_id)s, %(evaluated_at)s, %(index_version)s,
       (SELECT model_id FROM index_version WHERE version = %(index_version)s),
       (SELECT run_id FROM refresh_run WHERE NOT dry_run AND status IN ('succeeded', 'incomplete')
        ORDER BY finished_at DESC LIMIT 1),
       %(question_set)s, %(status)s, %(measures)s, %(compared)s, %(ndcg_before)s, %(ndcg_after)s, %(fallen)s;

-- name: golden_add_outcomes
-- How each query of it fared.
INSERT INTO golden_outcome (evaluation_id, query_digest, qid, ndcg, gold_ranks)
SELECT %(evaluation_id)s, *
FROM unnest(%(digests)s::text[], %(qids)s::text[], %(ndcgs)s::float8[], %(gold_ranks)s::json[]);

-- name: golden_set_baselines
-- From now on these queries are held against these outcomes.
INSERT INTO golden_baseline AS known (query_digest, evaluation_id, ndcg, gold_ranks, top)
SELECT given.query_digest, %(evaluation_id)s, given.ndcg, given.gold_ranks,
       ARRAY(SELECT jsonb_array_elements_text(given.top))
FROM unnest(%(digests)s::text[], %(ndcgs)s::float8[], %(gold_ranks)s::json[], %(tops)s::jsonb[])
     AS given (query_digest, ndcg, gold_ranks, top)
WHERE given.query_digest = ANY(%(raised)s)
ON CONFLICT (query_digest) DO UPDATE
SET evaluation_id = excluded.evaluation_id, ndcg = excluded.ndcg, gold_ranks = excluded.gold_ranks, top = excluded.top;

-- name: golden_trim
-- Only the latest runs are kept.
DELETE FROM golden_evaluation
WHERE evaluation_id NOT IN (SELECT evaluation_id FROM golden_evaluation
                            ORDER BY evaluated_at DESC, evaluation_id DESC LIMIT %(kept)s);

-- name: golden_trim_baselines
-- And what none of them asked is held against nothing.
DELETE FROM golden_baseline b WHERE NOT EXISTS (SELECT FROM golden_outcome o WHERE o.query_digest = b.query_digest);

-- name: golden_recent
-- The latest runs, newest first.
SELECT evaluation_id, evaluated_at, index_version, model_id, run_id, question_set, status, measures, compared,
       ndcg_before, ndcg_after, fallen
FROM golden_evaluation
ORDER BY evaluated_at DESC, evaluation_id DESC
LIMIT %(limit)s;

-- name: golden_outcomes
-- How the queries of these runs fared.
SELECT evaluation_id, qid, ndcg, gold_ranks FROM golden_outcome
WHERE evaluation_id = ANY(%(evaluation_ids)s)
ORDER BY evaluation_id, qid COLLATE "C", query_digest;
