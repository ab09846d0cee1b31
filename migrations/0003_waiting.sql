-- Jobs that wait for longer than a delay queue is for. A row is written before the job's message is
-- acknowledged, and deleted after the broker has confirmed its next one.

CREATE TABLE waiting (
    row_number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id text NOT NULL CHECK (account_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    id text NOT NULL CHECK (id ~ '^[A-Za-z0-9._:-]{1,128}$'),
    lane text NOT NULL CHECK (lane IN ('transactional', 'marketing')),
    reason text NOT NULL CHECK (reason IN
        ('not_before', 'quiet_hours', 'paused', 'retry_after', 'number', 'service')),
    -- Null: when nothing that the job belongs to is paused any more, or something is cancelled.
    due_at timestamptz,
    campaign_id text,
    journey_id text,
    batch_id text,
    -- The message, byte for byte as it came.
    job bytea NOT NULL,
    -- Our own headers.
    attempts integer NOT NULL,
    sheds integer NOT NULL,
    enqueued_ms bigint,
    since timestamptz NOT NULL DEFAULT now()
);

-- One account's and lane's rows in the order in which they are due.
CREATE INDEX waiting_due ON waiting (account_id, lane, due_at, row_number) WHERE due_at IS NOT NULL;

-- What tells jobs apart that belong to different things. A digest, because an index takes no long
-- texts, and nothing bounds what publishers call their campaigns.
CREATE FUNCTION waiting_group(campaign_id text, journey_id text, batch_id text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT md5(coalesce(md5(campaign_id), '-') || coalesce(md5(journey_id), '-') || coalesce(md5(batch_id), '-'))::uuid
$$;
-- Paused rows by what they belong to, so that those which stay paused are not read one by one.
CREATE INDEX waiting_paused ON waiting
    (account_id, lane, waiting_group(campaign_id, journey_id, batch_id), row_number)
    WHERE due_at IS NULL;
-- For `explain`, which may not know the account.
CREATE INDEX waiting_job ON waiting (id, account_id);

-- How far ahead of an account's ceiling jobs have been released, by all replicas together.
CREATE TABLE release_pace (
    account_id text NOT NULL,
    lane text NOT NULL,
    released_until timestamptz NOT NULL,
    PRIMARY KEY (account_id, lane)
);

-- Up to when a number's or service's ceiling is taken by jobs that wait for it.
CREATE TABLE ceiling_queues (
    account_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('number', 'service')),
    target text NOT NULL,
    taken_until timestamptz NOT NULL,
    PRIMARY KEY (account_id, kind, target)
);
