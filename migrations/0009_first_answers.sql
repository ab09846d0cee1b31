-- The first answers of the HTTP API to requests with an Idempotency-Key. The message's id is derived from account,
-- endpoint and key. A row without answer is a request that was begun: its digest keeps the key from being used for
-- another body.
CREATE TABLE first_answers (
    account_id text NOT NULL,
    message_id text NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    noted_at timestamptz NOT NULL DEFAULT now(),
    lane text,
    accepted_at timestamptz,
    PRIMARY KEY (account_id, message_id),
    CHECK ((lane IS NULL) = (accepted_at IS NULL))
);

-- What is old is forgotten from this end.
CREATE INDEX first_answers_by_age ON first_answers (noted_at);
