-- "Tool" in ASCII: identifies a file of Toolyard.
PRAGMA application_id = 0x546F6F6C;

CREATE TABLE kv (
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    version INTEGER NOT NULL,
    expires_ms INTEGER,
    PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX kv_expires ON kv (expires_ms) WHERE expires_ms IS NOT NULL;

-- Number of changes of a space.
CREATE TABLE revision (
    space TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blob (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (space, name)
) STRICT;

-- The row outlives its lease: the next holder needs the number.
CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    number INTEGER NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: numbers of removed records are not reused.
CREATE TABLE log (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE INDEX log_space ON log (space);
CREATE INDEX log_time ON log (space, time_ms);

CREATE TABLE log_tag (
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    number INTEGER NOT NULL REFERENCES log (number) ON DELETE CASCADE,
    PRIMARY KEY (space, name, value, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX log_tag_number ON log_tag (number);
