-- How far the upload of each batch over the HTTP API has come: the same upload again goes on from
-- there. It holds no recipients.

CREATE TABLE batches (
    account_id text NOT NULL CHECK (account_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    batch_id text NOT NULL CHECK (batch_id ~ '^[A-Za-z0-9._:-]{1,107}$'),
    -- SHA-256 of the rows, and of the parameters that decide what becomes of a row: the same twice
    -- makes the same jobs with the same ids.
    content text NOT NULL CHECK (content ~ '^[0-9a-f]{64}$'),
    options text NOT NULL CHECK (options ~ '^[0-9a-f]{64}$'),
    -- What every job of the batch says of when it was queued, in milliseconds since the Unix epoch.
    enqueued_ms bigint NOT NULL,
    -- Every good row up to the one that begins on this line is in a queue.
    confirmed_line bigint NOT NULL DEFAULT 0,
    -- What became of the rows up to there.
    queued bigint NOT NULL DEFAULT 0,
    duplicates bigint NOT NULL DEFAULT 0,
    rejected bigint NOT NULL DEFAULT 0,
    -- Who is queueing it, and until when that holds unless it is renewed: a server that dies leaves
    -- the batch to the next upload soon after.
    lease bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- When the last row had been read and every good one was in a queue.
    finished_at timestamptz,
    PRIMARY KEY (account_id, batch_id)
);
-- To find those that are so old that they are forgotten.
CREATE INDEX batches_updated ON batches (updated_at);

-- Rows of batches that are no jobs, without anything of their values.
CREATE TABLE batch_rejections (
    account_id text NOT NULL,
    batch_id text NOT NULL,
    -- The line on which the row starts, from 1.
    line bigint NOT NULL,
    field text NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (account_id, batch_id, line)
);

-- What became of a batch is counted from these alone: every column that is asked for is in them. The
-- names of batches that other publishers make may be of any length, and those that no index takes
-- are left out. Rows of one batch and end are one entry with many places, so that a row costs little;
-- it costs less to compare texts by their bytes than by a language's rules.
CREATE INDEX waiting_batches ON waiting
    (account_id COLLATE "C", batch_id COLLATE "C", reason COLLATE "C")
    WHERE octet_length(batch_id) <= 128;

-- The ledger's days before today have no rows of batches that were uploaded, and get none: reading
-- them all would keep everybody waiting who wants to write. Days that follow get theirs when they are
-- made.
CREATE INDEX ledger_batches ON ONLY ledger
    (account_id COLLATE "C", batch_id COLLATE "C", outcome COLLATE "C", reason COLLATE "C", day)
    WHERE octet_length(batch_id) <= 128;
DO $$
DECLARE
    partition regclass;
BEGIN
    FOR partition IN
        SELECT inhrelid FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'ledger'::regclass AND (relname = 'ledger_other'
            OR relname >= 'ledger_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM_DD'))
    LOOP
        EXECUTE format(
            'CREATE INDEX ON %s (account_id COLLATE "C", batch_id COLLATE "C", outcome COLLATE "C",
                reason COLLATE "C", day)
             WHERE octet_length(batch_id) <= 128',
            partition);
    END LOOP;
END
$$;
