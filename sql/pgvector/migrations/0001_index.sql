-- The index: what sources said (record), what is being prepared (draft), what readers see (asset and its companions).
-- Vectors live in tables of their own, one pair per index version (see queries/versions.sql).

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE source (
    name        text PRIMARY KEY,
    kind        text NOT NULL,
    overlay     boolean NOT NULL,
    path        text,
    registered  boolean NOT NULL DEFAULT false  -- by the command line, not by the sources file
);

CREATE TABLE refresh_run (
    run_id        text PRIMARY KEY,
    holder        text NOT NULL,
    status        text NOT NULL CHECK (status IN ('running', 'succeeded', 'incomplete', 'failed', 'abandoned')),
    sources       text[] NOT NULL,
    full_listing  boolean NOT NULL,
    dry_run       boolean NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz,
    index_version integer,
    error         text
);
CREATE INDEX refresh_run_started ON refresh_run (started_at DESC);

CREATE TABLE refresh_run_source (
    run_id      text NOT NULL REFERENCES refresh_run ON DELETE CASCADE,
    source      text NOT NULL,
    outcome     text NOT NULL,
    detail      text NOT NULL DEFAULT '',
    finished_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, source)
);

CREATE TABLE refresh_run_count (
    run_id text NOT NULL REFERENCES refresh_run ON DELETE CASCADE,
    source text NOT NULL,
    name   text NOT NULL,
    value  double precision NOT NULL,
    PRIMARY KEY (run_id, source, name)
);

-- One row: who may write. A run that finds another id here must stop.
CREATE TABLE refresh_lease (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    run_id       text,
    holder       text,
    heartbeat_at timestamptz
);
INSERT INTO refresh_lease DEFAULT VALUES;

CREATE TABLE record (
    source       text NOT NULL,
    asset_key    bigint NOT NULL,
    id           text NOT NULL,
    overlay      boolean NOT NULL,
    payload_hash bytea NOT NULL,
    payload      jsonb NOT NULL,
    PRIMARY KEY (source, asset_key)
);
CREATE UNIQUE INDEX record_owner ON record (asset_key) WHERE NOT overlay;
CREATE INDEX record_asset ON record (asset_key);

CREATE TABLE quarantine (
    source       text NOT NULL,
    record_ref   text NOT NULL,
    stage        text NOT NULL CHECK (stage IN ('extract', 'compose', 'embed')),
    error        text NOT NULL,
    attempts     integer NOT NULL DEFAULT 1,
    payload_hash bytea,
    payload      text NOT NULL DEFAULT '',
    run_id       text NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (source, stage, record_ref)
);

-- Interned access lists: a row never changes, so a reader may keep what it has read and ask for newer ones by `seq`.
CREATE TABLE acl (
    acl_id         bigint PRIMARY KEY,
    seq            bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    classification smallint NOT NULL CHECK (classification BETWEEN 0 AND 3),
    groups         text[] NOT NULL,
    users          text[] NOT NULL,
    denied_groups  text[] NOT NULL,
    denied_users   text[] NOT NULL
);

CREATE TABLE draft (
    asset_key     bigint PRIMARY KEY,
    id            text NOT NULL,
    source        text NOT NULL,
    object_type   text NOT NULL,
    name          text NOT NULL,
    title         text,
    acl_id        bigint NOT NULL REFERENCES acl,
    record_digest bytea NOT NULL,
    payload       jsonb NOT NULL,
    composed      jsonb  -- null: not yet
);
CREATE INDEX draft_uncomposed ON draft (asset_key) WHERE composed IS NULL;

CREATE TABLE edge (
    asset_key  bigint NOT NULL,
    target_key bigint NOT NULL,
    PRIMARY KEY (asset_key, target_key)
);
CREATE INDEX edge_target ON edge (target_key);

CREATE TABLE asset (
    asset_key      bigint PRIMARY KEY,
    id             text NOT NULL UNIQUE,
    source         text NOT NULL,
    object_type    text NOT NULL,
    name           text NOT NULL,
    title          text,
    acl_id         bigint NOT NULL REFERENCES acl,
    record_digest  bytea NOT NULL,
    keyword_length real NOT NULL,
    whole_names    text[] NOT NULL,
    whole_synonyms text[] NOT NULL,
    tags           text[] NOT NULL,
    terms          text[] NOT NULL,
    domains        text[] NOT NULL,
    owners         text[] NOT NULL,
    data_products  text[] NOT NULL,
    workspaces     text[] NOT NULL,
    shape          bigint,  -- equal for assets of the same type, name and columns
    siblings       bigint[] NOT NULL
);
CREATE INDEX asset_acl ON asset (acl_id);
CREATE INDEX asset_whole_names ON asset USING gin (whole_names);
CREATE INDEX asset_whole_synonyms ON asset USING gin (whole_synonyms);

CREATE TABLE asset_document (
    asset_key bigint PRIMARY KEY REFERENCES asset ON DELETE CASCADE,
    payload   jsonb NOT NULL,
    narrative text NOT NULL
);

CREATE TABLE asset_score (
    asset_key            bigint PRIMARY KEY REFERENCES asset ON DELETE CASCADE,
    signals              jsonb NOT NULL,
    certification        text NOT NULL,
    certification_expires_at timestamptz,
    critical             boolean,
    data_quality_percent double precision,
    curation_score       double precision NOT NULL,
    curation             jsonb NOT NULL,
    threshold            double precision NOT NULL,
    eligible             boolean NOT NULL,
    eligibility_reasons  text[] NOT NULL
);

CREATE TABLE posting (
    term      text COLLATE "C" NOT NULL,
    asset_key bigint NOT NULL,
    weight    real NOT NULL,
    PRIMARY KEY (term, asset_key)
);
CREATE INDEX posting_asset ON posting (asset_key);

CREATE TABLE term_stat (
    term   text COLLATE "C" PRIMARY KEY,
    assets bigint NOT NULL
);

CREATE TABLE corpus_stat (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    assets       bigint NOT NULL DEFAULT 0,
    total_length double precision NOT NULL DEFAULT 0
);
INSERT INTO corpus_stat DEFAULT VALUES;

CREATE TABLE index_version (
    version        integer PRIMARY KEY,
    model_id       text NOT NULL,
    model_revision text NOT NULL,
    dimension      integer NOT NULL,
    status         text NOT NULL CHECK (status IN ('building', 'active', 'retired')),
    created_at     timestamptz NOT NULL DEFAULT now(),
    promoted_at    timestamptz,
    UNIQUE (model_id, model_revision, dimension)
);
CREATE UNIQUE INDEX index_version_active ON index_version (status) WHERE status = 'active';

-- Vectors by content hash: re-entry, renames and rollbacks cost no embedding.
CREATE TABLE vector_cache (
    content_hash bytea PRIMARY KEY,
    embedding    vector NOT NULL CHECK (vector_norm(embedding) > 0)
);
ALTER TABLE vector_cache ALTER COLUMN embedding SET STORAGE PLAIN;
