-- How tries of one account's jobs ended, written into their claims; and what jobs that have ended
-- without being sent give up of frequency caps.
--
-- KEYS         the claim of each job, no job twice; none when claims are off
--              the sets of frequency caps that jobs are taken out of
-- ARGV[1]      how long a claim is kept, in milliseconds, where none is there to be rewritten
-- ARGV[2]      number of claims
-- ARGV[3 ...]  how each job's try ended, in order of the claims:
--                S<carrier>[:<carrier_ref>]   sent
--                N<try>                       not sent
--                U<try>                       nobody knows
-- ARGV[...]    for each of the sets the place of the job's claim (0: claims are off) and its id
--
-- What always holds:
--   * "sent" is recorded whoever holds the claim, and the first record stays;
--   * "not sent" removes a claim, and "nobody knows" ends its time, only while that same try holds
--     it: a late word about an old try never touches a newer one;
--   * a job leaves a set only when nothing is left of its claim that says that it was or may have
--     been sent;
--   * doing it twice changes nothing more;
--   * a claim's expiry is the one that admission gave it: leaving it alone costs a third less.

local NOT_SENT = 78 -- 'N'

local claims = tonumber(ARGV[2])
local values = read_all(KEYS, claims)
local now = now_ms()
local sent_head = format('S%d:', now)
local unknown_head = sending_until(now)
local new_end = format('%d', now + ARGV[1])
-- Jobs of which no try is, or may have been, on its way.
local free = { [0] = true }

for i = 1, claims do
  local key, claim, ending = KEYS[i], values[i], ARGV[i + 2]
  local state = claim and byte(claim)
  if byte(ending) == SENT then
    if state == SENDING then
      call('SET', key, sent_head .. sub(ending, 2), 'KEEPTTL')
    elseif state ~= SENT then
      call('SET', key, sent_head .. sub(ending, 2), 'PXAT', new_end)
    end
  elseif state == SENDING then
    if string.match(claim, '^P%d+:(.*)$') == sub(ending, 2) then
      if byte(ending) == NOT_SENT then
        call('DEL', key)
        free[i] = true
      else
        call('SET', key, unknown_head .. sub(ending, 2), 'KEEPTTL')
      end
    end
  else
    free[i] = state ~= SENT
  end
end

local at = claims + 3
for i = claims + 1, #KEYS do
  if free[tonumber(ARGV[at])] then
    -- What is no set counts nobody; the next admission puts it right.
    unless_mistyped('ZREM', KEYS[i], ARGV[at + 1])
  end
  at = at + 2
end
return #KEYS
