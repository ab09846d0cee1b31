-- Up to when a number's or service's ceiling is taken by jobs of a lane that wait for it: passwords
-- do not wait for their turn behind a campaign. In the place of `ceiling_queues`, which has no lanes
-- and stays for workers of the release before, which a roll-out may still be running.

CREATE TABLE ceiling_turns (
    account_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('number', 'service')),
    target text NOT NULL,
    lane text NOT NULL CHECK (lane IN ('transactional', 'marketing')),
    taken_until timestamptz NOT NULL,
    PRIMARY KEY (account_id, kind, target, lane)
);

-- What waits already is mostly marketing.
INSERT INTO ceiling_turns
SELECT account_id, kind, target, 'marketing', taken_until FROM ceiling_queues
WHERE taken_until > now();

-- Turns at a rate that holds no longer: whoever comes next begins anew, whatever changed the ceiling.
CREATE FUNCTION ceiling_turns_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM ceiling_turns
    WHERE account_id = OLD.account_id AND kind = OLD.kind AND target = OLD.target;
    RETURN NULL;
END
$$;
CREATE TRIGGER turns_end_with_their_rate AFTER UPDATE OF per_second ON ceilings
    FOR EACH ROW WHEN (OLD.per_second <> NEW.per_second) EXECUTE FUNCTION ceiling_turns_end();
CREATE TRIGGER turns_end_with_their_ceiling AFTER DELETE ON ceilings
    FOR EACH ROW EXECUTE FUNCTION ceiling_turns_end();
