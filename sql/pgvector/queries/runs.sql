-- name: lease_held
-- Who holds the lease, and what for; no row when it is free.
SELECT lease.run_id, run.kind, lease.holder, run.started_at, run.sources, run.full_listing, run.dry_run,
       extract(epoch FROM clock_timestamp() - lease.heartbeat_at)::float8 AS silent_seconds
FROM refresh_lease lease JOIN refresh_run run USING (run_id);

-- name: lease_lock
-- Nobody else takes or beats the lease until this transaction ends.
SELECT FROM refresh_lease FOR UPDATE;

-- name: lease_take
-- The lease is ours from now on.
UPDATE refresh_lease SET run_id = %(run_id)s, holder = %(holder)s, heartbeat_at = now();

-- name: lease_beat
-- Touch the lease, but only while it is ours: the fence in front of every write.
UPDATE refresh_lease SET heartbeat_at = now() WHERE run_id = %(run_id)s;

-- name: lease_look
-- Whether the lease is ours, without holding it.
SELECT FROM refresh_lease WHERE run_id = %(run_id)s;

-- name: lease_give_back
-- Free for the next run.
UPDATE refresh_lease SET run_id = NULL, holder = NULL, heartbeat_at = NULL WHERE run_id = %(run_id)s;

-- name: run_add
-- A new run.
INSERT INTO refresh_run (run_id, kind, holder, status, sources, full_listing, dry_run)
VALUES (%(run_id)s, %(kind)s, %(holder)s, 'running', %(sources)s, %(full)s, %(dry_run)s);

-- name: run_end
-- Its last word.
UPDATE refresh_run
SET status = %(status)s, finished_at = now(), error = %(error)s, index_version = %(index_version)s
WHERE run_id = %(run_id)s AND status = 'running';

-- name: run_count_put
-- One count of one source; a stage that is tried again replaces what it had counted.
INSERT INTO refresh_run_count AS known (run_id, source, name, value)
VALUES (%(run_id)s, %(source)s, %(name)s, %(value)s)
ON CONFLICT (run_id, source, name) DO UPDATE SET value = excluded.value;

-- name: run_count_add
-- One count of one source, added to what other batches counted.
INSERT INTO refresh_run_count AS known (run_id, source, name, value)
VALUES (%(run_id)s, %(source)s, %(name)s, %(value)s)
ON CONFLICT (run_id, source, name) DO UPDATE SET value = known.value + excluded.value;

-- name: run_counts
-- All counts of a run.
SELECT source, name, value FROM refresh_run_count WHERE run_id = %(run_id)s ORDER BY source, name;

-- name: run_get
-- One run.
SELECT run_id, kind, holder, status, sources, full_listing, dry_run, started_at, finished_at, index_version, error,
       extract(epoch FROM coalesce(finished_at, now()) - started_at)::float8 AS seconds
FROM refresh_run WHERE run_id = %(run_id)s;

-- name: runs_recent
-- The latest runs, newest first.
SELECT run_id, kind, holder, status, sources, full_listing, dry_run, started_at, finished_at, index_version, error,
       extract(epoch FROM coalesce(finished_at, now()) - started_at)::float8 AS seconds
FROM refresh_run ORDER BY started_at DESC LIMIT %(limit)s;

-- name: run_source_put
-- How a source's listing ended.
INSERT INTO refresh_run_source (run_id, source, outcome, detail)
VALUES (%(run_id)s, %(source)s, %(outcome)s, %(detail)s)
ON CONFLICT (run_id, source) DO UPDATE
SET outcome = excluded.outcome, detail = excluded.detail, finished_at = now();

-- name: run_sources
-- Every listing of a run.
SELECT source, outcome, detail FROM refresh_run_source WHERE run_id = %(run_id)s ORDER BY source;

-- name: source_put
-- A source as configured; written only when it differs.
INSERT INTO source AS known (name, kind, overlay, path, registered)
VALUES (%(name)s, %(kind)s, %(overlay)s, %(path)s, %(registered)s)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, overlay = excluded.overlay, path = excluded.path, registered = excluded.registered
WHERE (known.kind, known.overlay, known.path, known.registered)
      IS DISTINCT FROM (excluded.kind, excluded.overlay, excluded.path, excluded.registered);

-- name: source_forget
-- The command line's registration is taken back; what the source said stays.
UPDATE source SET registered = false WHERE name = %(name)s AND registered;

-- name: sources_list
-- Every known source with what it has in the index and how its last listing ended.
SELECT source.name, source.kind, source.overlay, source.path, source.registered,
       (SELECT count(*) FROM record WHERE record.source = source.name) AS records,
       last.run_id, last.outcome, last.detail, last.finished_at, run.status, run.started_at,
       (SELECT jsonb_object_agg(counted.name, counted.value) FROM refresh_run_count counted
        WHERE counted.run_id = last.run_id AND counted.source = source.name) AS counts,
       (SELECT extract(epoch FROM now() - max(finished.finished_at))::float8
        FROM refresh_run_source listing JOIN refresh_run finished USING (run_id)
        WHERE listing.source = source.name AND listing.outcome <> 'failed' AND NOT finished.dry_run
          AND finished.status IN ('succeeded', 'incomplete')
       ) AS data_age_seconds
FROM source
LEFT JOIN LATERAL (SELECT * FROM refresh_run_source listing WHERE listing.source = source.name
                   ORDER BY finished_at DESC LIMIT 1) AS last ON true
LEFT JOIN refresh_run run ON run.run_id = last.run_id
ORDER BY source.overlay, source.name;
