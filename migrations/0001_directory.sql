-- What the operator has said about accounts. Every worker keeps a copy of these tables in memory;
-- `directory.version` and a notification tell it that its copy is old.

CREATE TABLE directory (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- Grows with every change of the tables below, in the same transaction.
    version bigint NOT NULL DEFAULT 1,
    -- What happens to accounts that are not listed; null: what the settings say.
    unknown_accounts text CHECK (unknown_accounts IN ('default', 'refuse'))
);
INSERT INTO directory DEFAULT VALUES;

CREATE TABLE accounts (
    account_id text PRIMARY KEY CHECK (account_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    -- Messages per second, and percent of them that only the transactional lane can reach; null:
    -- what the settings say.
    budget_per_second integer CHECK (budget_per_second BETWEEN 0 AND 1000000000),
    reserve_percent smallint CHECK (reserve_percent BETWEEN 0 AND 100),
    quiet_hours boolean NOT NULL DEFAULT false,
    -- What becomes of a job outside its window.
    quiet_action text NOT NULL DEFAULT 'refuse' CHECK (quiet_action IN ('refuse', 'defer')),
    -- IANA name, for recipients whose own zone is not known.
    time_zone text,
    -- When sending is allowed, by channel: {"sms": "08:00-21:00", "email": null}; null: at any hour;
    -- a channel left out has its standard window.
    windows jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(windows) = 'object'),
    changed_at timestamptz NOT NULL DEFAULT now()
);

-- How often one recipient may be written to.
CREATE TABLE frequency_caps (
    account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
    name text NOT NULL CHECK (name ~ '^[A-Za-z0-9_-]{1,64}$'),
    -- Null: every channel, every category.
    channel text,
    category text,
    max_messages integer NOT NULL CHECK (max_messages BETWEEN 1 AND 10000),
    window_seconds integer NOT NULL CHECK (window_seconds BETWEEN 1 AND 31622400),
    PRIMARY KEY (account_id, name)
);

-- Messages per second of one sender number or one messaging service, within the account's budget.
CREATE TABLE ceilings (
    account_id text NOT NULL REFERENCES accounts ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('number', 'service')),
    target text NOT NULL CHECK (target <> ''),
    per_second integer NOT NULL CHECK (per_second BETWEEN 1 AND 1000000000),
    PRIMARY KEY (account_id, kind, target)
);

CREATE FUNCTION directory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE directory SET version = version + 1;
    RETURN NULL;
END
$$;

CREATE FUNCTION directory_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('lanekeeper_directory', NEW.version::text);
    RETURN NULL;
END
$$;

CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION directory_changed();
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON frequency_caps
    FOR EACH STATEMENT EXECUTE FUNCTION directory_changed();
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ceilings
    FOR EACH STATEMENT EXECUTE FUNCTION directory_changed();

-- Writing the policy for unlisted accounts counts as a change too.
CREATE FUNCTION directory_bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.version = OLD.version THEN
        NEW.version := OLD.version + 1;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER bump BEFORE UPDATE ON directory
    FOR EACH ROW EXECUTE FUNCTION directory_bump();
CREATE TRIGGER announce AFTER UPDATE ON directory
    FOR EACH ROW EXECUTE FUNCTION directory_announce();
