// Server-sent events read by fetch, because EventSource cannot send a key. One connection at a time;
// what breaks off is begun again, for ever, unless the server says that the key is not good.

/** Without a word for so long the connection counts as lost: the server speaks every second. */
const SILENCE_MS = 8000;
const SOONEST_MS = 1000;
const LATEST_MS = 10000;

/** Thrown when trying again with the same key is of no use. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Splits text as it arrives into events: pairs of name and data. */
export class EventParser {
  #rest = "";

  push(text) {
    const blocks = (this.#rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop();
    return blocks.map(readBlock).filter((event) => event.data !== "");
  }
}

function readBlock(block) {
  const event = { name: "message", data: "", retry: undefined };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event.name = value;
    if (field === "data") event.data += (event.data === "" ? "" : "\n") + value;
    if (field === "retry" && /^\d+$/.test(value)) event.retry = Number(value);
  }
  return event;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Reads the stream at `url` until `signal` is aborted, and begins anew when it breaks off.
 * `on.event(name, value)` gets each event, `on.lost(why)` hears of each break.
 * Rejects with `Refused` when the server wants another key.
 */
export async function follow(url, headers, on, signal) {
  let wait = SOONEST_MS;
  while (!signal.aborted) {
    let why = "the server has closed the connection";
    try {
      for await (const event of events(url, headers, signal)) {
        wait = event.retry ?? SOONEST_MS;
        if (event.name === "end") {
          const { reason } = JSON.parse(event.data);
          if (reason === "key_revoked") throw new Refused(401, "The key is revoked, or is no admin key any more.");
          why = reason === "stopping" ? "the server is stopping" : why;
          if (reason === "renew") why = undefined;
          break;
        }
        tell(on, event);
      }
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (signal.aborted) return;
      why = error.plain ?? "the server cannot be reached";
    }
    if (why !== undefined) {
      on.lost(why);
      // Many pages must not come back in the same moment.
      await pause(wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, LATEST_MS);
    }
  }
}

/** A fault in what shows an event is no fault of the connection. */
function tell(on, event) {
  try {
    on.event(event.name, JSON.parse(event.data));
  } catch (error) {
    reportError(error);
  }
}

async function* events(url, headers, signal) {
  const ending = new AbortController();
  const stop = () => ending.abort();
  signal.addEventListener("abort", stop);
  let watchdog = setTimeout(stop, SILENCE_MS);
  try {
    const options = { headers, signal: ending.signal, cache: "no-store", credentials: "omit" };
    const response = await fetch(url, options);
    if (!response.ok) throw await refusal(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(stop, SILENCE_MS);
      yield* parser.push(value);
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", stop);
    ending.abort();
  }
}

async function refusal(response) {
  const answer = await response.json().catch(() => ({}));
  const message = answer.error?.message ?? `the server answers with ${response.status}`;
  if ([401, 403, 404].includes(response.status)) return new Refused(response.status, message);
  return Object.assign(new Error(message), { plain: message });
}
