// The lanes page: asks for the key where one is needed, follows the stream, and shows what comes.

import { Chart } from "./charts.js";
import * as door from "./door.js";
import { say, showBudget, showLane, showPaused, showTable, showTrouble } from "./figures.js";
import { History } from "./history.js";
import { Refused, follow } from "./stream.js";

let history = new History();
let account;
const view = document.getElementById("view");
const section = (lane) => document.querySelector(`[data-lane="${lane}"]`);
const LANES = ["transactional", "marketing"];

function chartsOf(lane, place) {
  const rate = new Chart(section(lane).querySelector('[data-chart="rate"]'), {
    unit: "/s",
    height: 170,
    least: 10,
    series: [
      { key: "sent", name: "sent", stroke: "sent", fill: "sent-fill" },
      { key: "shed", name: "shed", stroke: "shed", dash: [7, 4] },
      { key: "limit", name: place === 0 ? "limit (the budget)" : "limit", stroke: "limit", dash: [2, 4] },
      { key: "other", name: place === 0 ? "marketing’s limit" : "budget", stroke: "quiet", dash: [2, 6], width: 1.5 },
    ],
  });
  const queue = new Chart(section(lane).querySelector('[data-chart="queue"]'), {
    unit: "",
    height: 110,
    least: 5,
    series: [
      { key: "queue", name: "this account", stroke: "queue" },
      { key: "all", name: "all accounts, at the broker", stroke: "quiet", dash: [7, 4] },
    ],
  });
  return (lanes) => {
    const times = history.times();
    const [mine, other] = [lanes.lanes[place].limit, lanes.lanes[1 - place].limit];
    const flat = (value) => times.map(() => value);
    const of = (field) => history.column((second) => second[lane][field]);
    rate.show(times, [of("dispatched"), of("shed"), flat(mine), flat(other)]);
    queue.show(times, [history.queued(place, "mine"), history.queued(place, "all")]);
  };
}

function latencyChart() {
  const chart = new Chart(section("latency").querySelector(".chart"), {
    unit: " ms",
    height: 150,
    least: 10,
    series: [
      { key: "p50", name: "half within", stroke: "sent", dots: true },
      { key: "p99", name: "99 of 100 within", stroke: "late", dash: [7, 4], dots: true },
    ],
  });
  return () => {
    const of = (field) => history.column((second) => second.transactional[field]);
    chart.show(history.times(), [of("p50_ms"), of("p99_ms")]);
  };
}

let draw;

function show(event) {
  if (account !== event.lanes.account_id) history = new History();
  account = event.lanes.account_id;
  history.add(event);
  say(document.getElementById("account"), `of ${account}`);
  view.hidden = false;
  // Not before they can be measured.
  draw ??= [...LANES.map(chartsOf), latencyChart()];
  showTrouble(event);
  showBudget(event);
  LANES.forEach((lane, place) => showLane(section(lane), event.lanes.lanes[place]));
  showPaused(event);
  if (history.last > 0) draw.forEach((one) => one(event.lanes));
  state("live", "Live");
}

function state(name, text) {
  document.getElementById("state").dataset.state = name;
  say(document.getElementById("state-text"), text);
}

const on = {
  event: (name, value) => {
    if (name === "lanes") show(value);
  },
  lost: (why) => {
    const { state: before } = document.getElementById("state").dataset;
    const at = new Date().toLocaleTimeString("en-GB");
    if (before !== "lost") state("lost", `No connection since ${at}: ${why}. Trying again; what is shown is old.`);
  },
};

/** Watches with a key, or without one, until the key is not good or not wanted any more. */
async function watch(key) {
  const ending = new AbortController();
  if (key !== undefined) door.offerToForget(() => ending.abort());
  state("connecting", "Connecting");
  const [url, headers] = key === undefined ? ["/page/events", {}] : ["/api/v1/lanes/events", { "X-API-Key": key }];
  try {
    await follow(url, headers, on, ending.signal);
    return "The key is forgotten.";
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (key === undefined) return "From here the page needs a key. With dev it is printed at the start.";
    return error.status === 403 ? "That key has not the scope admin." : `The key was not accepted: ${error.message}`;
  }
}

async function main() {
  const isOpen = document.documentElement.dataset.door === "open";
  let key = isOpen ? undefined : door.known();
  let why = "The page shows the lanes of the account that the key belongs to.";
  if (isOpen || key !== undefined) why = await watch(key);
  for (;;) {
    view.hidden = true;
    state("door", "Waiting for a key");
    key = await door.ask(why);
    why = await watch(key);
  }
}

const table = document.getElementById("table");
table.addEventListener("toggle", () => table.open && showTable(history));
document.getElementById("renew").addEventListener("click", () => showTable(history));

main();
