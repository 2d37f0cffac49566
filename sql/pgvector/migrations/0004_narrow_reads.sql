-- What a search reads of its candidates stands in narrow rows: no join for a length, no document for a place.

-- Each posting knows the keyword length of its asset, and the index holds all that scoring asks of a posting. Written
-- anew rather than updated, which would leave the table twice as large.
ALTER TABLE posting RENAME TO posting_before;
ALTER TABLE posting_before RENAME CONSTRAINT posting_pkey TO posting_before_pkey;
ALTER INDEX posting_asset RENAME TO posting_before_asset;
CREATE TABLE posting (
    term      text COLLATE "C" NOT NULL,
    asset_key bigint NOT NULL,
    weight    real NOT NULL,
    length    real NOT NULL,
    PRIMARY KEY (term, asset_key) INCLUDE (weight, length)
);
INSERT INTO posting (term, asset_key, weight, length)
SELECT p.term, p.asset_key, p.weight, asset.keyword_length FROM posting_before p JOIN asset USING (asset_key);
DROP TABLE posting_before;
CREATE INDEX posting_asset ON posting (asset_key);
ANALYZE posting;

ALTER TABLE asset
    ADD COLUMN location text[] NOT NULL DEFAULT '{}',
    ADD COLUMN url text;
UPDATE asset
SET location = ARRAY(SELECT jsonb_array_elements_text(d.payload -> 'location')), url = d.payload ->> 'url'
FROM asset_document d
WHERE d.asset_key = asset.asset_key AND d.payload ?| ARRAY['location', 'url'];
