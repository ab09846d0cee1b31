-- Shared head of admit.lua, after claims.lua: counters, and the limits that only some jobs have.
-- What keys, arguments and letters mean stands at the head of admit.lua.

local WINDOW = 1000

-- A counter as it stands, healed where it was damaged.
local function read_counter(key, held)
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

-- The limits of a batch that has limited jobs, by the arguments after the place `at`. A table of
--   values       of all keys but the sets
--   jobs         the place before the arguments of each limited job, by the job's place
--   last         the place of the last argument about limits
--   check(job)   the letter of what turns a limited job away, while what that letter brings along
--                is added to `extras`; or nothing, and the sets that it joins if it passes
--   count(job, joining) and write()
local function read_limits(at, now, extras)
  local jobs, counters = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local ceilings_at = at + 2
  local terms_at = ceilings_at + counters + 1
  local first_set = #KEYS - ARGV[terms_at]
  local first_counter = first_set - counters
  local limits = { jobs = {}, values = read_all(KEYS, first_set) }
  at = terms_at + 2 * ARGV[terms_at]
  for _ = 1, jobs do
    limits.jobs[tonumber(ARGV[at + 1])] = at
    at = at + 5 + ARGV[at + 5]
  end
  limits.last = at

  local counters_read, sets_read = {}, {}

  -- Whether the ceiling of a number or service is reached. Its counter is read when a job first
  -- needs it.
  local function is_reached(place)
    if place == '0' then return false end
    local counter = counters_read[place]
    if not counter then
      counter = read_counter(KEYS[first_counter + place], limits.values[first_counter + place])
      counter.ceiling = tonumber(ARGV[ceilings_at + place])
      counters_read[place] = counter
    end
    return counter.count >= counter.ceiling
  end

  -- The set of a cap, read when a job first needs it; what is no set is removed. `counted` are
  -- those of its jobs that are within the window, `joined` those that this batch adds.
  local function read_set(place)
    local set = sets_read[place]
    if set then return set end
    local key, terms = KEYS[first_set + place], terms_at + 2 * place
    local limit, window = tonumber(ARGV[terms - 1]), tonumber(ARGV[terms])
    set = { key = key, limit = limit, window = window, counted = 0, joins = 0 }
    local size = unless_mistyped('ZCARD', key)
    if not size then
      call('DEL', key)
    elseif size > 0 then
      set.since = format('(%d', now - window)
      set.counted = call('ZCOUNT', key, set.since, '+inf')
      set.is_stale = size > set.counted
    end
    sets_read[place] = set
    return set
  end

  local function holds(set, id)
    if set.joins > 0 and set.joined[id] then return true end
    local since = set.counted > 0 and call('ZSCORE', set.key, id)
    return since and tonumber(since) > now - set.window
  end

  -- A set that nobody joins now keeps its expiry: it must have one.
  local function heal(set)
    if set.counted > 0 and call('PTTL', set.key) == -1 then
      call('PEXPIRE', set.key, set.window)
    end
  end

  -- When a full set has room again, if nothing leaves it early.
  local function room_at(set)
    local stay = set.counted + set.joins - set.limit
    if stay >= set.counted then return now + set.window end
    local leaver =
      call('ZRANGE', set.key, set.since, '+inf', 'BYSCORE', 'LIMIT', stay, 1, 'WITHSCORES')
    return math.floor(tonumber(leaver[2])) + set.window
  end

  function limits.check(job)
    local id, joining = ARGV[job + 2], {}
    for cap = 1, tonumber(ARGV[job + 5]) do
      local set = read_set(ARGV[job + 5 + cap])
      if holds(set, id) then
        heal(set)
      elseif set.counted + set.joins >= set.limit then
        heal(set)
        extras[#extras + 1] = cap
        extras[#extras + 1] = room_at(set)
        return 'f'
      else
        joining[#joining + 1] = set
      end
    end
    if is_reached(ARGV[job + 3]) then return 'n' end
    if is_reached(ARGV[job + 4]) then return 's' end
    return nil, joining
  end

  function limits.count(job, joining)
    for i = 1, #joining do
      local set = joining[i]
      set.joined = set.joined or {}
      set.joined[ARGV[job + 2]] = true
      set.joins = set.joins + 1
    end
    for place = job + 3, job + 4 do
      local counter = counters_read[ARGV[place]]
      if counter then
        counter.count = counter.count + 1
        counter.more = counter.more + 1
      end
    end
  end

  function limits.write()
    local time = format('%d', now)
    for _, counter in pairs(counters_read) do write_counter(counter) end
    for _, set in pairs(sets_read) do
      if set.joins > 0 then
        if set.is_stale then
          call('ZREMRANGEBYSCORE', set.key, '-inf', format('%d', now - set.window))
        end
        for id in pairs(set.joined) do call('ZADD', set.key, time, id) end
        call('PEXPIREAT', set.key, format('%d', now + set.window))
      end
    end
  end

  return limits
end

