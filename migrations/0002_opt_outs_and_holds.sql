-- Who must not be written to, and what must not go on for now or ever. Both are asked about in the
-- same query, once per batch of jobs.

CREATE TABLE suppressions (
    account_id text NOT NULL CHECK (account_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    -- In the form in which jobs are compared: E.164 for telephone numbers, lower case for e-mail.
    recipient text NOT NULL CHECK (recipient <> ''),
    -- 'all' or a channel.
    scope text NOT NULL,
    -- Where it came from, for people.
    source text,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, recipient, scope)
);

CREATE TABLE holds (
    account_id text NOT NULL CHECK (account_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    kind text NOT NULL CHECK (kind IN ('account', 'campaign', 'journey', 'batch')),
    -- The campaign's, journey's or batch's id; the account's own id for kind 'account'.
    target text NOT NULL,
    state text NOT NULL CHECK (state IN ('paused', 'cancelled')),
    reason text,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, kind, target)
);
