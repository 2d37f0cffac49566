-- Reading a PostgreSQL catalog (14 or later). All run in one read-only, repeatable-read transaction with
-- search_path = pg_catalog, so that types and names are spelled in one way whoever connects.

-- name: session
-- Bounds and spellings for this transaction only. Locks matter to `view_definitions` alone: it opens the views.
SELECT set_config('statement_timeout', %(statement_timeout)s, true),
       set_config('lock_timeout', %(lock_timeout)s, true),
       set_config('search_path', 'pg_catalog', true),
       set_config('datestyle', 'ISO', true),
       set_config('intervalstyle', 'postgres', true),
       set_config('timezone', 'UTC', true),
       set_config('extra_float_digits', '1', true),
       set_config('lc_monetary', 'C', true);

-- name: database
-- The database behind the connection, and how many schemas and relations are in scope.
SELECT current_database()::text AS database, count(DISTINCT n.oid) AS schemas, count(c.oid) AS relations
FROM pg_namespace AS n
LEFT JOIN pg_class AS c
    ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
WHERE CASE WHEN cardinality(%(schemas)s::text[]) > 0 THEN n.nspname = ANY (%(schemas)s::text[])
           ELSE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' END;

-- name: missing_schemas
-- Schemas that are asked for and do not exist.
SELECT wanted AS name
FROM unnest(%(schemas)s::text[]) AS wanted
WHERE NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = wanted)
ORDER BY wanted;

-- name: schemas
-- One page of schemas after %(after)s, by name.
SELECT n.nspname::text AS schema_name, obj_description(n.oid, 'pg_namespace') AS comment,
       (SELECT count(*)
        FROM pg_class AS c
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition) AS table_count
FROM pg_namespace AS n
WHERE n.nspname > %(after)s::name
  AND CASE WHEN cardinality(%(schemas)s::text[]) > 0 THEN n.nspname = ANY (%(schemas)s::text[])
           ELSE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' END
ORDER BY n.nspname
LIMIT %(page_size)s;

-- name: relations
-- One page of relations after (%(after_schema)s, %(after_table)s), by name. Rows and pages are the planner's, as of
-- the last VACUUM or ANALYZE: reading them touches no table. A partitioned table has those of its partitions together;
-- a partition that was never looked at (-1) counts as empty when it has no pages, else the sum is unknown.
SELECT c.oid::bigint AS oid, n.nspname::text AS schema_name, c.relname::text AS table_name, c.relkind::text AS kind,
       c.relnatts::integer AS attribute_count, obj_description(c.oid, 'pg_class') AS comment, kept.row_count,
       kept.page_count * current_setting('block_size')::bigint AS size_bytes
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN LATERAL (
    WITH RECURSIVE member (oid) AS (
        SELECT c.oid
        UNION ALL
        SELECT i.inhrelid FROM member JOIN pg_inherits AS i ON i.inhparent = member.oid WHERE c.relkind = 'p'
    )
    SELECT CASE WHEN bool_or(part.reltuples < 0 AND part.relpages > 0) THEN NULL
                ELSE sum(part.reltuples::bigint) FILTER (WHERE part.reltuples >= 0) END::bigint AS row_count,
           sum(part.relpages) FILTER (WHERE part.reltuples >= 0 AND part.relkind <> 'f')::bigint AS page_count
    FROM member
    JOIN pg_class AS part ON part.oid = member.oid AND part.relkind IN ('r', 'm', 'f')
) AS kept ON true
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND (n.nspname, c.relname) > (%(after_schema)s::name, %(after_table)s::name)
  AND CASE WHEN cardinality(%(schemas)s::text[]) > 0 THEN n.nspname = ANY (%(schemas)s::text[])
           ELSE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' END
ORDER BY n.nspname, c.relname
LIMIT %(page_size)s;

-- name: columns
-- The columns of some relations in their order.
SELECT a.attrelid::bigint AS oid, a.attname::text AS column_name, format_type(a.atttypid, a.atttypmod) AS data_type,
       t.typcategory::text AS type_category, a.attnotnull AS not_null, col_description(a.attrelid, a.attnum) AS comment
FROM pg_attribute AS a
LEFT JOIN pg_type AS t ON t.oid = a.atttypid
WHERE a.attrelid = ANY (%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum;

-- name: column_statistics
-- What ANALYZE found in the columns that we may read. Values leave the database only when asked for, and only short
-- ones. A partitioned table has the statistics of all its partitions, another table those of its own rows.
SELECT wanted.oid::bigint AS oid, s.attname::text AS column_name, s.null_frac::float8 AS null_fraction,
       s.n_distinct::float8 AS n_distinct, common.found AS common_values, bounds.found AS histogram_ends
FROM unnest(%(oids)s::oid[], %(schema_names)s::name[], %(table_names)s::name[], %(partitioned)s::boolean[])
     AS wanted (oid, schema_name, table_name, partitioned)
JOIN pg_stats AS s
    ON s.schemaname = wanted.schema_name AND s.tablename = wanted.table_name AND s.inherited = wanted.partitioned
LEFT JOIN LATERAL (
    SELECT array_agg(item.value ORDER BY item.place) AS found
    FROM unnest(s.most_common_vals::text::text[]) WITH ORDINALITY AS item (value, place)
    WHERE %(with_values)s::boolean AND length(item.value) <= %(longest_value)s AND item.place <= 100
) AS common ON true
LEFT JOIN LATERAL (
    SELECT ARRAY[ends.found[1], ends.found[cardinality(ends.found)]] AS found
    FROM (SELECT s.histogram_bounds::text::text[] AS found) AS ends
    WHERE %(with_values)s::boolean AND ends.found IS NOT NULL
) AS bounds ON true
ORDER BY wanted.oid, s.attname;

-- name: primary_keys
-- The columns of each primary key, in key order.
SELECT k.conrelid::bigint AS oid, array_agg(a.attname::text ORDER BY part.place) AS columns
FROM pg_constraint AS k
CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY AS part (attnum, place)
JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = part.attnum
WHERE k.contype = 'p' AND k.conrelid = ANY (%(oids)s::oid[])
GROUP BY k.oid, k.conrelid;

-- name: foreign_keys
-- Foreign keys, columns paired in key order. One that points at a partition is given as pointing at the whole table;
-- the copies that PostgreSQL keeps for partitions are left out.
SELECT k.conrelid::bigint AS oid, target_schema.nspname::text AS target_schema, target.relname::text AS target_table,
       k.convalidated AS validated,
       array_agg(a.attname::text ORDER BY part.place) AS columns,
       array_agg(b.attname::text ORDER BY part.place) AS target_columns
FROM pg_constraint AS k
CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS part (attnum, target_attnum, place)
JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = part.attnum
JOIN pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = part.target_attnum
JOIN pg_class AS target ON target.oid = coalesce(pg_partition_root(k.confrelid)::oid, k.confrelid)
JOIN pg_namespace AS target_schema ON target_schema.oid = target.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0 AND k.conrelid = ANY (%(oids)s::oid[])
GROUP BY k.oid, k.conrelid, k.conname, k.convalidated, target_schema.nspname, target.relname
ORDER BY k.conrelid, k.conname;

-- name: upstream
-- What each view reads, as its rewrite rule depends on it; a partition stands for its whole table.
SELECT DISTINCT r.ev_class::bigint AS oid, n.nspname::text AS schema_name, c.relname::text AS table_name
FROM pg_rewrite AS r
JOIN pg_depend AS d
    ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
   AND d.refobjid <> r.ev_class
JOIN pg_class AS c
    ON c.oid = coalesce(pg_partition_root(d.refobjid)::oid, d.refobjid) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE r.ev_type = '1' AND r.ev_class = ANY (%(oids)s::oid[])
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY oid, schema_name, table_name;

-- name: downstream
-- The views that read each relation or one of its partitions.
WITH RECURSIVE member (root, oid) AS (
    SELECT wanted, wanted FROM unnest(%(oids)s::oid[]) AS wanted
    UNION ALL
    SELECT member.root, c.oid
    FROM member
    JOIN pg_inherits AS i ON i.inhparent = member.oid
    JOIN pg_class AS c ON c.oid = i.inhrelid AND c.relispartition
)
SELECT DISTINCT member.root::bigint AS oid, n.nspname::text AS schema_name, c.relname::text AS table_name
FROM member
JOIN pg_depend AS d
    ON d.refclassid = 'pg_class'::regclass AND d.refobjid = member.oid AND d.classid = 'pg_rewrite'::regclass
JOIN pg_rewrite AS r ON r.oid = d.objid AND r.ev_type = '1' AND r.ev_class <> member.oid
JOIN pg_class AS c ON c.oid = r.ev_class AND c.relkind IN ('v', 'm')
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY oid, schema_name, table_name;

-- name: view_definitions
-- The SELECT of each view; null for one that has gone. Unlike all others this one looks outside our snapshot, takes
-- locks, and may fail when a view is altered or dropped in the meantime.
SELECT wanted::bigint AS oid, pg_get_viewdef(wanted) AS definition
FROM unnest(%(oids)s::oid[]) AS wanted;
