-- Admission of one account's batch: of each job in order its claim, its frequency caps, the
-- ceilings of its number, its service and its lane, and then the counts, in one atomic step.
--
-- KEYS  the account's counter: a number that lives for one window
--       the claim of each job, in order; none when claims are off
--       T counters of sender numbers and messaging services, of the same kind
--       C sets of frequency caps, one for each cap and recipient: ids of jobs by when they were
--         admitted
-- ARGV  how long a claim is kept after its try's deadline, in milliseconds; 0: no claims
--       number of limited jobs: those with caps, a number's or a service's ceiling. Unless it is 0:
--         T, and the ceiling of each of those counters
--         C, and of each of those sets limit and window, the latter in milliseconds
--         each limited job: its place in the batch, its id, the place of its number's and of its
--           service's counter (0: none), how many caps it has, and the places of their sets
--       the jobs, in runs of neighbours with the same ceiling, claim_for and door. Each run is
--         number of jobs, ceiling, claim_for in milliseconds, door,
--         and of each job, where the door is `p`, when an API server admitted it,
--         and, unless claims are off, the id of its try
--       The doors: `w` a worker is about to send the job   `p` the same, and it is paid for: an API
--         server has admitted it   `i` an API server is about to queue it
--
-- Returns count, milliseconds left of the window (0: none is open), the present time, one letter
-- per job, and in order what some letters bring along:
--   a admitted   p admitted, an earlier try ended without a known result
--   k an API server has admitted it before, be it in this very call: when
--   c shed by another try's claim   d sent before: the "sent" claim
--   f a cap is full: which of the job's caps, and when it has room again, in milliseconds since
--     the Unix epoch
--   n shed by its number's ceiling   s by its service's   l by its lane's
--
-- What always holds, whatever was in the keys before:
--   * no count passes the ceiling of the job that raised it last, and no set holds more jobs of
--     the window that ends now than the limit of the job that joined it last;
--   * jobs that are not admitted change nothing: no count, no cap, no claim;
--   * a job that a set holds already is not counted by it again, and keeps its time;
--   * what an API server admitted is not counted again, by anything, for one second; after that
--     it is admitted like any other job;
--   * a window ends one second after its first count; later counts never move its end;
--   * no counter and no set stays without an expiry, nor as something that is none; a set stays
--     for as long as its newest job counts.
-- The counts are written before the claims, so that no error in between lets a job pass uncounted.

-- How long an API server's admission is worth something, in milliseconds.
local PAID_FOR = 1000

local life = tonumber(ARGV[1])
local now = now_ms()
local letters, extras = {}, {}
local limits = ARGV[2] ~= '0' and read_limits(1, now, extras)
local values = limits and limits.values or read_all(KEYS, #KEYS)
local account = read_counter(KEYS[1], values[1])
local claims, claim_values, claim_ends = {}, {}, {}
local taken = {}
local limited = limits and limits.jobs
local keys = life > 0 and KEYS
local count, admitted = account.count, 0
local job, jobs = 0, 0
local at = limits and limits.last + 1 or 3

while ARGV[at] do
  local ceiling, claim_for = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local door = ARGV[at + 3]
  local queues = door == 'i'
  local claim_head = queues and format('A%d', now) or sending_until(now + claim_for)
  local claim_end = format('%d', now + (queues and 0 or claim_for) + life)
  jobs = jobs + ARGV[at]
  at = at + 4
  while job < jobs do
    job = job + 1
    local key = keys and keys[job + 1]
    local claim = key and values[job + 1]
    local state = claim and byte(claim)
    local own = limited and limited[job]
    local paid = false
    if door == 'p' then
      paid = math.abs(now - ARGV[at]) <= PAID_FOR
      at = at + 1
    end
    local letter, joining
    if state == SENT then
      letter = 'd'
      extras[#extras + 1] = claim
    elseif queues and key and taken[key] == door then
      -- Only whoever queues it knows whether it is in a queue. So each of them queues it.
      letter = 'k'
      extras[#extras + 1] = now
    elseif (key and taken[key])
      or (state == SENDING
        and (queues or tonumber(string.match(claim, '^P(%d+):') or 0) > now)) then
      letter = 'c'
    elseif queues and state == ADMITTED and string.find(claim, '^A%d+$') then
      letter = 'k'
      extras[#extras + 1] = tonumber(sub(claim, 2))
    elseif own and not paid then
      letter, joining = limits.check(own)
    end
    if letter then
      -- Turned away already.
    elseif paid or count < ceiling then
      letter = state == SENDING and 'p' or 'a'
      if not paid then
        count = count + 1
        admitted = admitted + 1
        if own then limits.count(own, joining) end
      end
      if key then
        local place = #claims + 1
        taken[key] = door
        claims[place] = key
        claim_values[place] = queues and claim_head or claim_head .. ARGV[at]
        claim_ends[place] = claim_end
      end
    else
      letter = 'l'
    end
    letters[job] = letter
    if key then at = at + 1 end
  end
end

account.more = admitted
write_counter(account)
if limits then limits.write() end
for i = 1, #claims do
  call('SET', claims[i], claim_values[i], 'PXAT', claim_ends[i])
end

local answer = { count, math.max(account.left, 0), now, table.concat(letters) }
for i = 1, #extras do answer[4 + i] = extras[i] end
return answer
