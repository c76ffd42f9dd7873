-- Records repeat a small number of tags. Each tag is stored once, and records refer to its number: storing the text in two
-- indexes took most of the time of an insertion.

CREATE TABLE log_word (
    word INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (space, name, value)
) STRICT;

CREATE TABLE log_said (
    word INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (word, number)
) STRICT, WITHOUT ROWID;

-- The words of a record, with commas between them: without another index this is how they are found when the record goes.
ALTER TABLE log ADD COLUMN words TEXT NOT NULL DEFAULT '';

INSERT INTO log_word (space, name, value) SELECT DISTINCT space, name, value FROM log_tag;
INSERT INTO log_said (word, number) SELECT word, number FROM log_tag JOIN log_word USING (space, name, value);
UPDATE log SET words = coalesce((
    SELECT group_concat(word) FROM log_tag JOIN log_word USING (space, name, value) WHERE log_tag.number = log.number
), '');

DROP TABLE log_tag;

-- The word leads: of a long log only what says it is looked at.
CREATE VIEW log_tag AS SELECT space, name, value, number FROM log_word CROSS JOIN log_said USING (word);
