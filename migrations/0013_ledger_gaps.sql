-- What the ledger was never told: while it was away for long, or could not take a row, jobs ended
-- whose ends are written nowhere. One row for each account and outage of a worker, so that whoever
-- counts the ledger's rows can tell a job that has not ended from one that may have.

CREATE TABLE ledger_gaps (
    -- Null: jobs of any accounts.
    account_id text,
    -- When the first and the last of them ended, by the worker's clock.
    began_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    -- How many they are.
    jobs bigint NOT NULL
);
CREATE INDEX ledger_gaps_ended ON ledger_gaps (ended_at);
