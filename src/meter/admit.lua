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
--       the jobs, in runs of neighbours with the same ceiling and claim_for. Each run is
--         number of jobs, ceiling, claim_for in milliseconds,
--         and, unless claims are off, the id of each job's try
--
-- Returns count, milliseconds left of the window (0: none is open), one letter per job, and in
-- order what some letters bring along:
--   a admitted   p admitted, an earlier try ended without a known result
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
--   * a window ends one second after its first count; later counts never move its end;
--   * no counter and no set stays without an expiry, nor as something that is none; a set stays
--     for as long as its newest job counts.
-- The counts are written before the claims, so that no error in between lets a job pass uncounted.

local WINDOW = 1000

local at = 0
local function next_arg()
  at = at + 1
  return ARGV[at]
end
local function next_number()
  return tonumber(next_arg())
end

local life = next_number()

-- What the limited jobs need; a batch without them pays nothing for it. Places in KEYS and ARGV
-- are those before the first one.
local limited = {}
local counters, ceilings_at, first_counter = 0, 0, #KEYS
local sets_at, first_set = 0, #KEYS
local limited_jobs = next_number()
if limited_jobs > 0 then
  counters = next_number()
  ceilings_at, at = at, at + counters
  local sets = next_number()
  sets_at, at = at, at + 2 * sets
  first_set = #KEYS - sets
  first_counter = first_set - counters
  for _ = 1, limited_jobs do
    limited[next_number()] = at
    at = at + 4 + ARGV[at + 4]
  end
end

local values = read_all(KEYS, first_set)

-- A counter as it stands, healed where it was damaged.
local function read_counter(place)
  local key, held = KEYS[place], values[place]
  local left = call('PTTL', key)
  if held and (held == '0' or (#held < 16 and string.find(held, '^[1-9]%d*$'))) then
    if left < 0 or left > WINDOW then
      call('PEXPIRE', key, WINDOW)
      left = WINDOW
    end
    return { key = key, count = tonumber(held), left = left, more = 0 }
  end
  if left ~= -2 then call('DEL', key) end
  return { key = key, count = 0, left = -2, more = 0 }
end

local function write_counter(counter)
  if counter.more == 0 then return end
  if counter.left == -2 then
    call('SET', counter.key, counter.more, 'PX', WINDOW)
    counter.left = WINDOW
  else
    call('INCRBY', counter.key, counter.more)
  end
end

local account = read_counter(1)
local now = now_ms()

-- The counter of a number or service, read when a job first needs it.
local targets = {}
local function target(place)
  local counter = targets[place]
  if not counter then
    counter = read_counter(first_counter + place)
    counter.ceiling = tonumber(ARGV[ceilings_at + place])
    targets[place] = counter
  end
  return counter
end

local function is_full(place)
  if place == 0 then return false end
  local counter = target(place)
  return counter.count >= counter.ceiling
end

local function count_one(counter)
  counter.count = counter.count + 1
  counter.more = counter.more + 1
end

-- The set of a cap, read when a job first needs it; one that is no set is removed. `counted` are
-- those of its jobs that are within the window, `joined` those that this batch adds.
local sets = {}
local function cap_set(place)
  local set = sets[place]
  if set then return set end
  local key, terms = KEYS[first_set + place], sets_at + 2 * place
  local limit, window = tonumber(ARGV[terms - 1]), tonumber(ARGV[terms])
  set = { key = key, limit = limit, window = window, counted = 0, joined = {}, joins = 0 }
  local size = unless_mistyped('ZCARD', key)
  if not size then
    call('DEL', key)
  elseif size > 0 then
    set.since = format('(%d', now - window)
    set.counted = call('ZCOUNT', key, set.since, '+inf')
    set.is_stale = size > set.counted
    if call('PTTL', key) == -1 then call('PEXPIRE', key, window) end
  end
  sets[place] = set
  return set
end

local function holds(set, id)
  if set.joined[id] then return true end
  local since = set.counted > 0 and call('ZSCORE', set.key, id)
  return since and tonumber(since) > now - set.window
end

-- When a full set has room again, if nothing leaves it early.
local function room_at(set)
  local must_stay = set.counted + set.joins - set.limit
  if must_stay >= set.counted then return now + set.window end
  local leaver = call('ZRANGE', set.key, set.since, '+inf', 'BYSCORE', 'LIMIT', must_stay, 1, 'WITHSCORES')
  return math.floor(tonumber(leaver[2])) + set.window
end

-- What comes after the letters.
local extras = {}

-- What turns a limited job away, as a letter; or nothing, and the sets that it joins if it passes.
local function check(job)
  local id, joining = ARGV[job + 1], {}
  for cap = 1, tonumber(ARGV[job + 4]) do
    local set = cap_set(tonumber(ARGV[job + 4 + cap]))
    if not holds(set, id) then
      if set.counted + set.joins >= set.limit then
        extras[#extras + 1] = cap
        extras[#extras + 1] = room_at(set)
        return 'f'
      end
      joining[#joining + 1] = set
    end
  end
  if is_full(tonumber(ARGV[job + 2])) then return 'n' end
  if is_full(tonumber(ARGV[job + 3])) then return 's' end
  return nil, joining
end

-- Counts a limited job that passes.
local function count_limited(job, joining)
  for _, set in ipairs(joining) do
    set.joined[ARGV[job + 1]] = true
    set.joins = set.joins + 1
  end
  for place = job + 2, job + 3 do
    local counter = targets[tonumber(ARGV[place])]
    if counter then count_one(counter) end
  end
end

local letters = {}
local claims, claim_values, claim_ends = {}, {}, {}
local taken = {}
local job, jobs = 0, 0
at = at + 1

while ARGV[at] do
  local ceiling, claim_for = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local claim_head = sending_until(now + claim_for)
  local claim_end = format('%d', now + claim_for + life)
  jobs = jobs + ARGV[at]
  at = at + 3
  while job < jobs do
    job = job + 1
    local key = life > 0 and KEYS[job + 1]
    local claim = key and values[job + 1]
    local state = claim and byte(claim)
    local own = limited[job]
    local letter, joining
    if state == SENT then
      letter = 'd'
      extras[#extras + 1] = claim
    elseif (key and taken[key])
      or (state == SENDING and tonumber(string.match(claim, '^P(%d+):') or 0) > now) then
      letter = 'c'
    elseif own then
      letter, joining = check(own)
    end
    if not letter and account.count >= ceiling then letter = 'l' end
    if not letter then
      letter = state == SENDING and 'p' or 'a'
      count_one(account)
      if own then count_limited(own, joining) end
      if key then
        local claimed = account.more
        taken[key] = true
        claims[claimed] = key
        claim_values[claimed] = claim_head .. ARGV[at]
        claim_ends[claimed] = claim_end
      end
    end
    letters[job] = letter
    if key then at = at + 1 end
  end
end

local function write_set(set)
  if set.joins == 0 then return end
  if set.is_stale then
    call('ZREMRANGEBYSCORE', set.key, '-inf', format('%d', now - set.window))
  end
  local time = format('%d', now)
  for id in pairs(set.joined) do call('ZADD', set.key, time, id) end
  call('PEXPIREAT', set.key, format('%d', now + set.window))
end

write_counter(account)
for _, counter in pairs(targets) do write_counter(counter) end
for _, set in pairs(sets) do write_set(set) end
for i = 1, #claims do
  call('SET', claims[i], claim_values[i], 'PXAT', claim_ends[i])
end

local answer = { account.count, math.max(account.left, 0), table.concat(letters) }
for i = 1, #extras do answer[3 + i] = extras[i] end
return answer
