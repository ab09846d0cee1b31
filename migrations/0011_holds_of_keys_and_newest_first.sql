-- Who made a hold: the id of the API key, or null, an operator. A key of an account must not lift what
-- an operator has laid down, an unpaid invoice for instance.
ALTER TABLE holds ADD COLUMN by_key text;

-- An account's messages, the newest first. On a ledger that is there already it is built while nobody
-- can write there, in a second or two for each million rows. Ids are no part of it, so that rows of
-- one millisecond, which are many, share an entry.
CREATE INDEX ledger_newest ON ledger (account_id, settled_at);
