-- Texts that callers choose are stored as bytes: `text` cannot hold a NUL, and its order depends on the locale.

-- Milliseconds since the Unix epoch by the clock of this server, as the clocks of the gateways may differ.
CREATE FUNCTION toolyard.now_ms() RETURNS bigint LANGUAGE sql STABLE AS
    'SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint';

CREATE SEQUENCE toolyard.version;

CREATE TABLE toolyard.kv (
    space text NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    version bigint NOT NULL,
    expires_ms bigint,
    PRIMARY KEY (space, key)
);

CREATE INDEX kv_expires ON toolyard.kv (expires_ms) WHERE expires_ms IS NOT NULL;

-- Number of changes of a space. Each change locks its row until the commit, so a reader that sees a number sees
-- all changes that it counts.
CREATE TABLE toolyard.revision (
    space text PRIMARY KEY,
    number bigint NOT NULL
);

CREATE TABLE toolyard.blob (
    space text NOT NULL,
    name bytea NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (space, name)
);

-- The row outlives its lease: the next holder needs the number.
CREATE TABLE toolyard.lease (
    name bytea PRIMARY KEY,
    holder bytea NOT NULL,
    number bigint NOT NULL,
    until_ms bigint NOT NULL
);

CREATE TABLE toolyard.log (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space text NOT NULL,
    time_ms bigint NOT NULL,
    body text NOT NULL
);

CREATE INDEX log_space ON toolyard.log (space, number);
CREATE INDEX log_time ON toolyard.log (space, time_ms);

CREATE TABLE toolyard.log_tag (
    space text NOT NULL,
    name text NOT NULL,
    value bytea NOT NULL,
    number bigint NOT NULL REFERENCES toolyard.log (number) ON DELETE CASCADE,
    PRIMARY KEY (space, name, value, number)
);

CREATE INDEX log_tag_number ON toolyard.log_tag (number);
