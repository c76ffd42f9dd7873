-- Records are kept in blocks since this version. Those in the table `log` stay there until they are trimmed, and no
-- record is added to it.

CREATE TABLE log_total (
    space TEXT PRIMARY KEY,
    -- The number of the next record: numbers of removed records are not used again.
    next INTEGER NOT NULL,
    -- Bytes of all blocks and of all records in `log`.
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The body is the last column: a search reads the others of many rows, and the body of few.
CREATE TABLE log_block (
    space TEXT NOT NULL,
    -- Number of the first record.
    first INTEGER NOT NULL,
    records INTEGER NOT NULL,
    earliest_ms INTEGER NOT NULL,
    latest_ms INTEGER NOT NULL,
    -- Hashes of the tags of all records, in order, each of four bytes.
    tags BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (space, first)
) STRICT;

INSERT INTO log_total (space, next, bytes) SELECT space, max(number) + 1, sum(length(body)) FROM log GROUP BY space;
