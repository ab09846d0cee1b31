-- Keys of the HTTP API. Every API server keeps a copy of this table in memory, and follows it by the
-- directory's version and notification. Accounts need no row of their own to have a key.

CREATE TABLE api_keys (
    -- The part of a key that may be seen by anybody, and by which it is found.
    key_id text PRIMARY KEY CHECK (key_id ~ '^[a-z2-7]{12}$'),
    account_id text NOT NULL CHECK (account_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    -- What it is for, for people.
    name text NOT NULL CHECK (name <> ''),
    -- SHA-256 of the secret part. The secret itself is kept nowhere.
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    scopes text[] NOT NULL CHECK (
        cardinality(scopes) > 0 AND scopes <@ ARRAY['send', 'read', 'admin']),
    -- The origin of what is sent with it.
    origin text NOT NULL DEFAULT 'api' CHECK (origin IN ('api', 'campaign', 'journey')),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Null: it is valid. A key that was revoked stays, for those who look later.
    revoked_at timestamptz
);
CREATE INDEX api_keys_account ON api_keys (account_id, created_at);

CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION directory_changed();
