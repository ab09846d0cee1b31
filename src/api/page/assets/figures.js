// The figures in words and numbers.

import { shown } from "./charts.js";

const number = (value, unit = "") => (value === null || value === undefined ? "not known" : `${value.toLocaleString("en")}${unit}`);

/** Puts text where it is not there yet, so that nothing is read out twice. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Fills a definition list with pairs of name and value. */
function list(element, pairs) {
  if (element.children.length !== pairs.length) {
    element.replaceChildren(...pairs.map(() => {
      const pair = document.createElement("div");
      pair.append(document.createElement("dt"), document.createElement("dd"));
      return pair;
    }));
  }
  pairs.forEach(([name, value], place) => {
    say(element.children[place].firstChild, name);
    say(element.children[place].lastChild, value);
  });
}

export function showBudget({ lanes }) {
  const [, marketing] = lanes.lanes;
  const { budget_per_second: budget, reserve_per_second: reserve, meter } = lanes;
  const share = (part) => (budget === 0 ? 0 : Math.min(100, (100 * part) / budget));
  const gauge = document.getElementById("gauge");
  const place = (name, x, width) => {
    const bar = gauge.querySelector(`.${name}`);
    bar.setAttribute("x", x);
    bar.setAttribute("width", width);
  };
  place("used", 0, share(meter.used ?? 0));
  place("reserve", share(marketing.limit), share(reserve));
  place("mark", share(marketing.limit) - 0.2, reserve === 0 ? 0 : 0.4);
  say(document.getElementById("gauge-text"), `${number(meter.used)} of ${budget} in this window; marketing may go up to ${marketing.limit}.`);
  list(document.getElementById("budget"), [
    ["Budget", number(budget, "/s")],
    ["Kept for transactional", number(reserve, "/s")],
    ["Counter", meter.mode === "shared" ? "shared by all processes" : "each process its own"],
  ]);
}

/** What lies in the queue that the account has to itself, and how far that has come if it is not simply there. */
function ownQueue({ waiting, in_own_queue: jobs, own_queue_state: state }) {
  if (state === null) return waiting === null ? "not known" : "none: it shares";
  return state === "open" ? number(jobs) : number(jobs, ` (${state})`);
}

export function showLane(section, lane) {
  const latency = lane.latency === null ? "–" : `${shown(lane.latency.p50_ms)} / ${shown(lane.latency.p99_ms)} ms`;
  const oldest = lane.oldest_seconds === null ? "–" : `${number(lane.oldest_seconds, " s")}`;
  list(section.querySelector(".figures"), [
    ["Limit", number(lane.limit, "/s")],
    ["Sent, last minute", number(lane.dispatched_last_minute)],
    ["Shed, last minute", number(lane.shed_last_minute)],
    ["Refused, last minute", number(lane.refused_last_minute)],
    ["Queued, this account", number(lane.queued)],
    ["Of these waiting", number(lane.waiting)],
    ["Of these in its own queue", ownQueue(lane)],
    ["Oldest of them", oldest],
    ["In the queues, all accounts", number(lane.queued_all_accounts)],
    ["Took, p50 / p99", latency],
  ]);
}

export function showPaused({ lanes }) {
  document.getElementById("paused-none").hidden = lanes.paused.length > 0;
  const items = lanes.paused.map((hold) => {
    const what = hold.kind === "account" ? "The account" : `${hold.kind} ${hold.id}`;
    const since = hold.since === null ? "" : ` since ${new Date(hold.since).toLocaleString("en-GB")}`;
    return `${what}: ${hold.state}${since}${hold.reason === null ? "" : ` – ${hold.reason}`}`;
  });
  if (lanes.paused_is_more) items.push("… and more: GET /api/v1/holds lists all of them");
  const shownNow = document.getElementById("paused");
  const before = [...shownNow.children].map((item) => item.textContent);
  if (before.join("\n") === items.join("\n")) return;
  shownNow.replaceChildren(...items.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
}

const OUTAGE = "Redis does not answer, or takes no writes: each process counts for itself now, so that together they may send more than the budget. What is not known until it is back is left out here.";
const MISSING = {
  redis: "Redis does not answer: the last minute is not known.",
  database: "The database does not answer: what waits and what is paused is not known.",
  broker: "The broker does not answer: the lengths of its queues are not known.",
};

export function showTrouble({ lanes }) {
  const outage = document.getElementById("outage");
  const isLocal = lanes.meter.mode === "local";
  say(outage, isLocal ? OUTAGE : "");
  outage.hidden = !isLocal;
  const missing = document.getElementById("missing");
  const texts = lanes.missing.filter((part) => !(isLocal && part === "redis")).map((part) => MISSING[part]);
  say(missing, texts.join(" "));
  missing.hidden = texts.length === 0;
}

export function showTable(history) {
  const body = document.querySelector("#table tbody");
  const row = ({ second, transactional, marketing }) => {
    const cells = [transactional.dispatched, transactional.shed, transactional.p50_ms, transactional.p99_ms, marketing.dispatched, marketing.shed];
    const line = document.createElement("tr");
    const time = document.createElement("th");
    time.scope = "row";
    time.textContent = new Date(second * 1000).toLocaleTimeString("en-GB");
    line.append(time, ...cells.map((value) => {
      const cell = document.createElement("td");
      cell.textContent = shown(value);
      return cell;
    }));
    return line;
  };
  body.replaceChildren(...history.rows().map(row));
}
