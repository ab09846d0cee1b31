-- Shared head of admit.lua and conclude.lua: how claims are written and read.
--
-- A claim is one short string, told apart by its first letter:
--   P<deadline>:<try>               "sending": a try is under way until <deadline>
--   S<at>:<carrier>[:<carrier_ref>] "sent": a carrier took the job at <at>
--   A<at>                           "admitted": an API server let the job in at <at>, and nobody has
--                                   tried to send it yet; stands in no worker's way
--   anything else                   unreadable: stands in nobody's way
-- Times are milliseconds since the Unix epoch by this server's clock.

local ADMITTED, SENDING, SENT = 65, 80, 83 -- 'A', 'P', 'S'

local call, byte, sub, format = redis.call, string.byte, string.sub, string.format

-- Values of the first keys in one command each few thousand keys: Lua can spread no more than
-- about 8,000 values over one call. A key that holds no string reads as false.
local function read_all(keys, count)
  local slice = 4000
  if count == 0 then return {} end
  if count <= slice then
    return call('MGET', unpack(keys, 1, count))
  end
  local values = {}
  for first = 1, count, slice do
    local last = math.min(first + slice - 1, count)
    for _, value in ipairs(call('MGET', unpack(keys, first, last))) do
      values[#values + 1] = value
    end
  end
  return values
end

-- The number that a command answers, or nothing where the key holds something of another type.
local function unless_mistyped(...)
  local reply = redis.pcall(...)
  if type(reply) == 'number' then return reply end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then call(...) end -- raises that error
end

local function now_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The head of a "sending" claim; the try's id follows.
local function sending_until(deadline)
  return format('P%d:', deadline)
end

