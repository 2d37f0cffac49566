-- What trust was scored from, when assets passed the gate, and how scores drift from run to run.

ALTER TABLE asset_score
    -- The components as scored, and their sum. A certification counts here until the asset is scored again, also when
    -- it has expired meanwhile: what is answered is computed from the signals by the clock of the question. These
    -- columns are for statistics, and for whoever asks in SQL.
    ADD COLUMN governance jsonb,
    ADD COLUMN governance_score double precision,
    ADD COLUMN curation_native boolean NOT NULL DEFAULT false,  -- the catalog's own number, not that of the items
    -- What the scores rest on: the rules and the settings of scoring (`services.index.scoring`). Null: scored before
    -- this was kept; to be scored again.
    ADD COLUMN rules_digest text,
    -- The curation score that the verdict (threshold, eligible, eligibility_reasons) was given on. It differs from
    -- the present one while an asset that was scored anew waits for the gate.
    ADD COLUMN gated_score double precision;
UPDATE asset_score SET gated_score = curation_score;
ALTER TABLE asset_score ALTER COLUMN gated_score SET NOT NULL;

-- A reevaluation has no sources and makes no data younger.
ALTER TABLE refresh_run
    ADD COLUMN kind text NOT NULL DEFAULT 'refresh' CHECK (kind IN ('refresh', 'reevaluation'));

-- Every passing of the gate by an asset that is published, in or out; what an asset was published with at first is
-- none. Outlives runs and assets: who erases an asset deletes its rows here by key.
CREATE TABLE gate_event (
    event_id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    asset_key             bigint NOT NULL,
    id                    text NOT NULL,
    source                text NOT NULL,
    object_type           text NOT NULL,
    happened_at           timestamptz NOT NULL DEFAULT now(),
    run_id                text NOT NULL,
    entered               boolean NOT NULL,
    cause                 text NOT NULL CHECK (cause IN ('metadata', 'rule', 'threshold')),
    curation_score_before double precision NOT NULL,
    curation_score_after  double precision NOT NULL,
    threshold_before      double precision NOT NULL,
    threshold_after       double precision NOT NULL
);
CREATE INDEX gate_event_run ON gate_event (run_id);
CREATE INDEX gate_event_asset ON gate_event (asset_key);

-- How many assets have scores in each tenth of the scale, after each run that changed one.
CREATE TABLE score_histogram (
    run_id     text NOT NULL REFERENCES refresh_run ON DELETE CASCADE,
    score_kind text NOT NULL CHECK (score_kind IN ('curation', 'governance')),
    bucket     smallint NOT NULL CHECK (bucket BETWEEN 0 AND 9),
    assets     bigint NOT NULL,
    PRIMARY KEY (run_id, score_kind, bucket)
);

-- The largest changes of a run. An asset that both the rules and its data moved has a row for each.
CREATE TABLE score_mover (
    run_id       text NOT NULL REFERENCES refresh_run ON DELETE CASCADE,
    score_kind   text NOT NULL CHECK (score_kind IN ('curation', 'governance')),
    asset_key    bigint NOT NULL REFERENCES asset ON DELETE CASCADE,
    cause        text NOT NULL CHECK (cause IN ('data', 'rules')),
    score_before double precision NOT NULL,
    score_after  double precision NOT NULL,
    PRIMARY KEY (run_id, score_kind, asset_key, cause)
);
CREATE INDEX score_mover_asset ON score_mover (asset_key);
