-- Records are kept in blocks since this version. Those in the table `log` stay there until they are trimmed, and no
-- record is added to it.

-- An addition locks the row of its space until the commit, so that gateways add one after the other.
CREATE TABLE toolyard.log_total (
    space text PRIMARY KEY,
    -- The number of the next record: numbers of removed records are not used again.
    next bigint NOT NULL,
    -- Bytes of all blocks and of all records in `log`.
    bytes bigint NOT NULL
);

CREATE TABLE toolyard.log_block (
    space text NOT NULL,
    -- Number of the first record.
    first bigint NOT NULL,
    records bigint NOT NULL,
    earliest_ms bigint NOT NULL,
    latest_ms bigint NOT NULL,
    -- Hashes of the tags of all records.
    tags integer[] NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (space, first)
);

-- The bodies are compressed already, and a search that skips a block does not load its body.
ALTER TABLE toolyard.log_block ALTER COLUMN body SET STORAGE EXTERNAL;

INSERT INTO toolyard.log_total (space, next, bytes)
    SELECT space, max(number) + 1, sum(octet_length(body))::bigint FROM toolyard.log GROUP BY space;
