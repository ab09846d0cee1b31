-- Admission of one account's batch: claims, then ceilings, then the count, in one atomic step.
--
-- KEYS[1]      the account's counter: a number that lives for one window
-- KEYS[2 ...]  the claim of each job, in order; none when claims are off
-- ARGV[1]      how long a claim is kept after its try's deadline, in milliseconds; 0: no claims
-- ARGV[2 ...]  the jobs, in runs of neighbours with the same ceiling and claim_for. Each run is
--                number of jobs, ceiling, claim_for in milliseconds,
--                and, unless claims are off, the id of each job's try
--
-- Returns count, milliseconds left of the window (0: none is open), one letter per job, and the
-- "sent" claims of the jobs lettered d, in order. The letters:
--   a admitted   p admitted, an earlier try ended without a known result
--   l shed by the ceiling   c shed by another try's claim   d sent before
--
-- What always holds, whatever was in the keys before:
--   * the count never passes the ceiling of the job that raised it last;
--   * jobs that are not admitted change nothing: neither the count nor a claim;
--   * a window ends one second after its first count; later counts never move its end;
--   * the counter never stays without an expiry, nor as something that is no count.
-- The count is written before the claims, so that no error in between lets a job pass uncounted.

local WINDOW = 1000

local life = tonumber(ARGV[1])
local counter = KEYS[1]
local values = read_all(KEYS)
local left = call('PTTL', counter)
local now = now_ms()

-- The window as it stands, healed where it was damaged.
local count = 0
local held = values[1]
if held and (held == '0' or (#held < 16 and string.find(held, '^[1-9]%d*$'))) then
  count = tonumber(held)
  if left < 0 or left > WINDOW then
    call('PEXPIRE', counter, WINDOW)
    left = WINDOW
  end
elseif left ~= -2 then
  call('DEL', counter)
  left = -2
end

local letters, records = {}, {}
local claims, claim_values, claim_ends = {}, {}, {}
local taken = {}
local admitted, job, at = 0, 0, 2

while ARGV[at] do
  local jobs, ceiling, claim_for = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local claim_head = sending_until(now + claim_for)
  local claim_end = string.format('%d', now + claim_for + life)
  at = at + 3
  for _ = 1, jobs do
    job = job + 1
    local key = KEYS[job + 1]
    local claim = key and values[job + 1]
    local state = claim and byte(claim)
    local letter
    if state == SENT then
      letter = 'd'
      records[#records + 1] = claim
    elseif (key and taken[key])
      or (state == SENDING and tonumber(string.match(claim, '^P(%d+):') or 0) > now) then
      letter = 'c'
    elseif count < ceiling then
      letter = state == SENDING and 'p' or 'a'
      count = count + 1
      admitted = admitted + 1
      if key then
        taken[key] = true
        claims[admitted] = key
        claim_values[admitted] = claim_head .. ARGV[at]
        claim_ends[admitted] = claim_end
      end
    else
      letter = 'l'
    end
    letters[job] = letter
    if key then at = at + 1 end
  end
end

if admitted > 0 then
  if left == -2 then
    call('SET', counter, admitted, 'PX', WINDOW)
    left = WINDOW
  else
    call('INCRBY', counter, admitted)
  end
  for i = 1, #claims do
    call('SET', claims[i], claim_values[i], 'PXAT', claim_ends[i])
  end
end

local answer = { count, math.max(left, 0), table.concat(letters) }
for i = 1, #records do answer[3 + i] = records[i] end
return answer
