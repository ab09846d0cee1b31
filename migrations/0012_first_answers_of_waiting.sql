-- A message that waits is answered with the instant until which it does, where that is known. The answer to a repeated
-- request is the first one, so that instant belongs to it.
ALTER TABLE first_answers ADD COLUMN waits_until timestamptz;
