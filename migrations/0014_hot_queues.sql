-- Queues of accounts' own at the broker. An account that keeps being shed in a lane gets one, so that
-- its backlog stands in nobody's way; when it has long not needed it, it shares again.
--
--   new       the number is taken; the queue is being declared
--   spare     the queue exists, and will be some account's
--   open      it is an account's: jobs are sent there, and workers consume from it
--   draining  no more jobs are sent there; workers still consume from it
--   closing   workers leave it; what is left in it is moved to where it would be published now, and
--             then it is deleted, and the row with it
--
-- Spare queues are made beforehand, because a quorum queue is not safe at once: messages confirmed by
-- one that was declared less than a second before its broker was killed are lost, and the queue is of
-- no use any more (RabbitMQ 3.10.8, observed).
--
-- Jobs are only ever sent to the queue of an open row: a row is open before its queue is bound, and
-- unbound before it is no longer open. A closing row never becomes anything else.

CREATE SEQUENCE hot_queue_numbers;

CREATE TABLE hot_queues (
    -- Part of the queue's name. Never given out twice: whoever is late in deleting an old queue cannot
    -- meet a new one.
    number bigint PRIMARY KEY DEFAULT nextval('hot_queue_numbers'),
    -- What the names of all queues begin with.
    prefix text NOT NULL,
    lane text NOT NULL CHECK (lane IN ('transactional', 'marketing')),
    -- Null: nobody's yet.
    account_id text CHECK (account_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    state text NOT NULL DEFAULT 'new',
    CHECK (CASE state WHEN 'new' THEN account_id IS NULL WHEN 'spare' THEN account_id IS NULL
        ELSE state IN ('open', 'draining', 'closing') AND account_id IS NOT NULL END),
    -- Grows with each step, so that nobody takes the next one who has not seen the last.
    version bigint NOT NULL DEFAULT 1,
    changed_at timestamptz NOT NULL DEFAULT now(),
    -- When jobs of the account last waited for its ceiling.
    pressed_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (prefix, lane, account_id)
);

-- Grows with every change of which queues there are, and of which accounts are paused.
CREATE TABLE hot_queues_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version bigint NOT NULL DEFAULT 1
);
INSERT INTO hot_queues_version DEFAULT VALUES;

CREATE FUNCTION hot_queues_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE hot_queues_version SET version = version + 1;
    PERFORM pg_notify('lanekeeper_hot_queues', '');
    RETURN NULL;
END
$$;

CREATE TRIGGER changed AFTER INSERT OR UPDATE OF state OR DELETE OR TRUNCATE ON hot_queues
    FOR EACH STATEMENT EXECUTE FUNCTION hot_queues_changed();
CREATE TRIGGER hot_queues_changed AFTER INSERT OR UPDATE OF state OR DELETE OR TRUNCATE ON holds
    FOR EACH STATEMENT EXECUTE FUNCTION hot_queues_changed();
