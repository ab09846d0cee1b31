-- Jobs that wait for an instant end soon after what they belong to is cancelled, and not only at that
-- instant, by which somebody may have lifted the cancellation. For that they are looked for while
-- `ending_since` is set: from the cancellation until a while later none of them is left. What was
-- cancelled long ago costs nothing.

ALTER TABLE holds ADD COLUMN ending_since timestamptz;
CREATE INDEX holds_ending ON holds (ending_since) WHERE ending_since IS NOT NULL;

-- Whoever cancels, and however: also by SQL, and by programs of the release before. To cancel once
-- more looks once more.
CREATE FUNCTION hold_ends_what_waits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.ending_since := CASE NEW.state WHEN 'cancelled' THEN clock_timestamp() END;
    RETURN NEW;
END
$$;
CREATE TRIGGER ends_what_waits BEFORE INSERT OR UPDATE OF state ON holds
    FOR EACH ROW EXECUTE FUNCTION hold_ends_what_waits();

UPDATE holds SET ending_since = now() WHERE state = 'cancelled';

-- Rows with an instant by each of the things that they belong to, and by digests, as in
-- `waiting_group`. An account's own rows are in `waiting_due`.
CREATE INDEX waiting_of_campaign ON waiting
    (account_id, lane, (md5(campaign_id)::uuid), due_at, row_number)
    WHERE due_at IS NOT NULL AND campaign_id IS NOT NULL;
CREATE INDEX waiting_of_journey ON waiting
    (account_id, lane, (md5(journey_id)::uuid), due_at, row_number)
    WHERE due_at IS NOT NULL AND journey_id IS NOT NULL;
CREATE INDEX waiting_of_batch ON waiting
    (account_id, lane, (md5(batch_id)::uuid), due_at, row_number)
    WHERE due_at IS NOT NULL AND batch_id IS NOT NULL;

-- The rows of a lane that belong to what such a hold is on and are due after that instant: so many at
-- most, those that are due first. One of the four parts is read. Digests are compared as a range,
-- and not as equals: so the order is that of one index alone, whatever a planner believes of a table
-- that has just grown.
CREATE FUNCTION waiting_of(
    of_account text, of_lane text, kind text, target text, after timestamptz, most bigint
) RETURNS TABLE (row_number bigint) LANGUAGE sql STABLE AS $$
    (SELECT waiting.row_number FROM waiting
     WHERE kind = 'account' AND target = of_account AND account_id = of_account AND lane = of_lane
        AND due_at > after
     ORDER BY due_at, waiting.row_number LIMIT most)
    UNION ALL
    (SELECT waiting.row_number FROM waiting
     WHERE kind = 'campaign' AND account_id = of_account AND lane = of_lane
        AND due_at IS NOT NULL AND campaign_id = target
        AND (md5(campaign_id)::uuid, due_at) > (md5(target)::uuid, after)
        AND md5(campaign_id)::uuid <= md5(target)::uuid
     ORDER BY md5(campaign_id)::uuid, due_at, waiting.row_number LIMIT most)
    UNION ALL
    (SELECT waiting.row_number FROM waiting
     WHERE kind = 'journey' AND account_id = of_account AND lane = of_lane
        AND due_at IS NOT NULL AND journey_id = target
        AND (md5(journey_id)::uuid, due_at) > (md5(target)::uuid, after)
        AND md5(journey_id)::uuid <= md5(target)::uuid
     ORDER BY md5(journey_id)::uuid, due_at, waiting.row_number LIMIT most)
    UNION ALL
    (SELECT waiting.row_number FROM waiting
     WHERE kind = 'batch' AND account_id = of_account AND lane = of_lane
        AND due_at IS NOT NULL AND batch_id = target
        AND (md5(batch_id)::uuid, due_at) > (md5(target)::uuid, after)
        AND md5(batch_id)::uuid <= md5(target)::uuid
     ORDER BY md5(batch_id)::uuid, due_at, waiting.row_number LIMIT most)
$$;
