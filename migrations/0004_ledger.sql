-- What became of each job: one row, written before the job's message is acknowledged. One partition
-- per day, so that old ones are dropped whole.

CREATE TABLE ledger (
    account_id text NOT NULL,
    id text NOT NULL,
    -- The day of settled_at, in UTC.
    day date NOT NULL,
    lane text NOT NULL,
    -- The part of the lane rule that chose it.
    lane_rule text NOT NULL,
    origin text,
    campaign_id text,
    journey_id text,
    batch_id text,
    channel text NOT NULL,
    -- Hashed, masked or absent, by the settings.
    recipient text,
    outcome text NOT NULL,
    reason text,
    detail text,
    carrier text,
    carrier_ref text,
    attempts integer NOT NULL,
    sheds integer NOT NULL,
    -- What the account's counter stood at when the job was admitted, and whose counter it was.
    admitted_as integer,
    meter text CHECK (meter IN ('shared', 'local')),
    enqueued_at timestamptz,
    admitted_at timestamptz,
    settled_at timestamptz NOT NULL,
    next_allowed_at timestamptz,
    -- The id first, so that `explain` finds a job whose account it is not told.
    PRIMARY KEY (id, account_id, day)
) PARTITION BY RANGE (day);

-- For rows of days that have no partition of their own.
CREATE TABLE ledger_other PARTITION OF ledger DEFAULT;
-- By day: to see whether a day has rows here before it gets a partition, and to delete old ones.
CREATE INDEX ledger_other_day ON ledger_other (day);
