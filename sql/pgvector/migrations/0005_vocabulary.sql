-- What misspelt words of a query may have meant.

-- Every unstemmed word that an asset ever had, with its term in `posting`. Rows are added and never taken away: a
-- process keeps them in memory and asks for newer ones by `seq`. That a word stands here says nothing about who may
-- know it; whoever proposes one looks for an asset that the caller may see.
CREATE TABLE vocabulary (
    word text COLLATE "C" PRIMARY KEY,
    term text COLLATE "C" NOT NULL,
    seq  bigint GENERATED ALWAYS AS IDENTITY UNIQUE
);

-- The words of each asset that stand in the vocabulary. Filled when the assets are composed again, by the next refresh.
ALTER TABLE asset_document ADD COLUMN words text[] NOT NULL DEFAULT '{}';
