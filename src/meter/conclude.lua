-- How tries of one account's jobs ended, written into their claims.
--
-- KEYS[1 ...]  the claim of each job; no job twice
-- ARGV[1]      how long a claim is kept, in milliseconds, where none is there to be rewritten
-- ARGV[2 ...]  how each job's try ended, in order:
--                S<carrier>[:<carrier_ref>]   sent
--                N<try>                       not sent
--                U<try>                       nobody knows
--
-- What always holds:
--   * "sent" is recorded whoever holds the claim, and the first record stays;
--   * "not sent" removes a claim, and "nobody knows" ends its time, only while that same try holds
--     it: a late word about an old try never touches a newer one;
--   * doing it twice changes nothing more;
--   * a claim's expiry is the one that admission gave it: leaving it alone costs a third less.

local NOT_SENT = 78 -- 'N'

local values = read_all(KEYS)
local now = now_ms()
local sent_head = string.format('S%d:', now)
local unknown_head = sending_until(now)
local new_end = string.format('%d', now + ARGV[1])

for i, key in ipairs(KEYS) do
  local claim, ending = values[i], ARGV[i + 1]
  local state = claim and byte(claim)
  if byte(ending) == SENT then
    if state == SENDING then
      call('SET', key, sent_head .. sub(ending, 2), 'KEEPTTL')
    elseif state ~= SENT then
      call('SET', key, sent_head .. sub(ending, 2), 'PXAT', new_end)
    end
  elseif state == SENDING and string.match(claim, '^P%d+:(.*)$') == sub(ending, 2) then
    if byte(ending) == NOT_SENT then
      call('DEL', key)
    else
      call('SET', key, unknown_head .. sub(ending, 2), 'KEEPTTL')
    end
  end
end
return #KEYS
