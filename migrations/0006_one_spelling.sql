-- Opt-outs and holds written by hand are held to the form in which jobs are compared: what is spelt
-- otherwise would be taken, and silently do nothing.
--
-- Rows that are there already are brought into that form. Those that cannot be, and so can never
-- have stopped a job, are set aside and not lost: somebody may still want to know whom they meant.

-- What could not be brought into form. Nothing reads it: whoever has looked at it may empty it.
CREATE TABLE suppressions_set_aside (
    account_id text NOT NULL,
    recipient text NOT NULL,
    scope text NOT NULL,
    source text,
    since timestamptz NOT NULL
);

-- One label of a domain in its ASCII form (RFC 3492). Only for the rows that are there.
CREATE FUNCTION old_row_ascii_label(label text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    codes integer[] := ARRAY(SELECT ascii(c) FROM regexp_split_to_table(label, '') AS c);
    result text := regexp_replace(label, '[^\x01-\x7f]', '', 'g');
    handled integer := length(result);
    plain integer := handled;
    next integer := 128;
    delta bigint := 0;
    bias integer := 72;
    least integer;
    code integer;
    q bigint;
    k integer;
    t integer;
BEGIN
    IF handled = length(label) THEN
        RETURN label;
    END IF;
    IF plain > 0 THEN
        result := result || '-';
    END IF;
    WHILE handled < length(label) LOOP
        least := (SELECT min(c) FROM unnest(codes) AS c WHERE c >= next);
        delta := delta + (least - next)::bigint * (handled + 1);
        next := least;
        FOREACH code IN ARRAY codes LOOP
            IF code < next THEN
                delta := delta + 1;
            ELSIF code = next THEN
                q := delta;
                k := 36;
                LOOP
                    t := least(greatest(k - bias, 1), 26);
                    EXIT WHEN q < t;
                    result := result
                        || substr('abcdefghijklmnopqrstuvwxyz0123456789', (t + (q - t) % (36 - t))::integer + 1, 1);
                    q := (q - t) / (36 - t);
                    k := k + 36;
                END LOOP;
                result := result || substr('abcdefghijklmnopqrstuvwxyz0123456789', q::integer + 1, 1);
                delta := delta / CASE WHEN handled = plain THEN 700 ELSE 2 END;
                delta := delta + delta / (handled + 1);
                k := 0;
                WHILE delta > 455 LOOP
                    delta := delta / 35;
                    k := k + 36;
                END LOOP;
                bias := k + (36 * delta / (delta + 38))::integer;
                delta := 0;
                handled := handled + 1;
            END IF;
        END LOOP;
        delta := delta + 1;
        next := next + 1;
    END LOOP;
    RETURN 'xn--' || result;
END
$$;

CREATE FUNCTION old_row_one_spelling(recipient text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    bare text := regexp_replace(recipient, '^[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+|[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$', '', 'g');
    domain text;
BEGIN
    -- A number: without what people put between its digits.
    IF bare ~ '^\+[0-9 ().\u00a0/-]+$' THEN
        RETURN regexp_replace(bare, '[^+0-9]', '', 'g');
    END IF;
    IF bare !~ '^[^@]+@[^@]+$' THEN
        RETURN bare;
    END IF;
    bare := lower(bare);
    IF bare ~ '[^\x01-\x7f]' THEN
        bare := normalize(bare, NFC);
    END IF;
    domain := regexp_replace(split_part(bare, '@', 2), '\.$', '');
    IF domain ~ '[^\x01-\x7f]' THEN
        domain := (
            SELECT string_agg(old_row_ascii_label(label), '.' ORDER BY place)
            FROM regexp_split_to_table(lower(normalize(domain, NFKC)), '[.\u3002]')
                WITH ORDINALITY AS one (label, place)
        );
    END IF;
    RETURN split_part(bare, '@', 1) || '@' || domain;
END
$$;

-- Whether a job of that scope can have this recipient. Ids of channels that have their own (push and
-- messengers) are any text that a job's recipient can be.
-- Blanks are all of Unicode's, whatever the database's locale knows of them.
CREATE FUNCTION is_recipient(recipient text, scope text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN octet_length(recipient) NOT BETWEEN 1 AND 1024 THEN false
        WHEN recipient ~ '^[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|[\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$|[\x01-\x1f\x7f-\x9f]' THEN false
        WHEN scope IN ('sms', 'whatsapp', 'rcs', 'viber', 'voice')
            OR scope = 'all' AND recipient !~ '@'
            -- The longest plans are longer than E.164 has it.
            THEN recipient ~ '^\+[1-9][0-9]{4,18}$'
        WHEN scope IN ('email', 'all')
            THEN recipient ~ '^[^\s\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"(),:;<>@\[\\\]]+@[a-z0-9_-]+(\.[a-z0-9_-]+)*$'
                AND recipient = lower(recipient)
                AND (recipient !~ '[^\x01-\x7f]' OR recipient IS NFC NORMALIZED)
        ELSE true
    END
$$;

WITH old AS (
    DELETE FROM suppressions
    WHERE scope NOT IN ('all', 'sms', 'whatsapp', 'email', 'rcs', 'viber', 'messenger', 'line',
            'telegram', 'push', 'voice')
        OR NOT is_recipient(recipient, scope)
    RETURNING *
), spelt AS (
    SELECT account_id, source, since, recipient AS as_it_was, scope AS scope_as_it_was,
        old_row_one_spelling(recipient) AS recipient,
        CASE trim(lower(scope)) WHEN '' THEN 'all' ELSE trim(lower(scope)) END AS scope
    FROM old
), judged AS (
    SELECT *, is_recipient(recipient, scope)
        AND scope IN ('all', 'sms', 'whatsapp', 'email', 'rcs', 'viber', 'messenger', 'line',
            'telegram', 'push', 'voice') AS fits
    FROM spelt
), aside AS (
    INSERT INTO suppressions_set_aside
    SELECT account_id, as_it_was, scope_as_it_was, source, since FROM judged WHERE NOT fits
)
INSERT INTO suppressions (account_id, recipient, scope, source, since)
SELECT account_id, recipient, scope, source, since FROM judged WHERE fits
ON CONFLICT DO NOTHING;

ALTER TABLE suppressions
    ADD CONSTRAINT scope_is_all_or_a_channel CHECK (scope IN ('all', 'sms', 'whatsapp', 'email',
        'rcs', 'viber', 'messenger', 'line', 'telegram', 'push', 'voice')),
    ADD CONSTRAINT recipient_as_jobs_are_compared CHECK (is_recipient(recipient, scope));

-- A hold on an account is on that account. One with another target has paused nothing; whether it
-- was meant for the account or the target nobody can say, so that it goes.
DELETE FROM holds WHERE kind = 'account' AND target <> account_id;
ALTER TABLE holds
    ADD CONSTRAINT account_is_its_own_target CHECK (kind <> 'account' OR target = account_id);

DROP FUNCTION old_row_one_spelling;
DROP FUNCTION old_row_ascii_label;
