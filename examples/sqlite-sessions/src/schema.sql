-- Another process that opens the file gets an error.
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
-- Without a snapshot: the session has ended, and is not saved again before it expires.
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    lineage TEXT NOT NULL,
    snapshot TEXT,
    principal TEXT,
    expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS expiry ON sessions (expires);
CREATE TABLE IF NOT EXISTS streams (
    session TEXT,
    stream INTEGER,
    dropped INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (session, stream)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    session TEXT,
    stream INTEGER,
    sequence INTEGER,
    last INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (session, stream, sequence)
);
