-- Golden queries: how each run of them went, and the outcomes that later runs are held against. Ids of assets stand in
-- gold_ranks and top without a reference: who erases an asset deletes the rows that name it.

CREATE TABLE golden_evaluation (
    evaluation_id text PRIMARY KEY,
    evaluated_at  timestamptz NOT NULL,
    index_version integer NOT NULL,
    model_id      text,             -- of that version; kept here because versions are dropped one day
    run_id        text,             -- the run that had published last; outlives it
    question_set  text NOT NULL,    -- digest of all questions with their gold
    status        text NOT NULL CHECK (status IN ('first', 'passed', 'fell', 'accepted')),
    measures      json NOT NULL,    -- json, not jsonb: the order of the measures is kept
    compared      integer NOT NULL,
    ndcg_before   double precision, -- means over the compared queries; null when none was asked before
    ndcg_after    double precision,
    fallen        text[] NOT NULL   -- qids
);
CREATE INDEX golden_evaluation_time ON golden_evaluation (evaluated_at DESC);

CREATE TABLE golden_outcome (
    evaluation_id text NOT NULL REFERENCES golden_evaluation ON DELETE CASCADE,
    query_digest  text NOT NULL,
    qid           text NOT NULL,
    ndcg          double precision NOT NULL,
    gold_ranks    json NOT NULL,
    PRIMARY KEY (evaluation_id, query_digest)
);
CREATE INDEX golden_outcome_query ON golden_outcome (query_digest);

-- One row per query, whichever file asks it. It is a copy: the run that set it need not be kept for it.
CREATE TABLE golden_baseline (
    query_digest  text PRIMARY KEY,
    evaluation_id text NOT NULL,
    ndcg          double precision NOT NULL,
    gold_ranks    json NOT NULL,
    top           text[] NOT NULL
);
