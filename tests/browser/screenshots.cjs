// Pictures of the lanes page for docs/images, taken of `lanekeeper dev` while the scenario of the
// README runs: 250 low-priority and 15 high-priority messages a second. scripts/screenshots.sh starts
// both.

const path = require("node:path");
const { chromium } = require("playwright-core");

const [base, key, into] = process.argv.slice(2);
const SECONDS = 62;
const LOOKS = [
  { name: "lanes-light", viewport: { width: 1200, height: 900 }, colorScheme: "light" },
  { name: "lanes-dark", viewport: { width: 1200, height: 900 }, colorScheme: "dark" },
  { name: "lanes-phone", viewport: { width: 360, height: 780 }, colorScheme: "light", deviceScaleFactor: 2 },
];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function send(priority) {
  const response = await fetch(`${base}/api/v1/messages/sms`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-API-Key": key },
    body: JSON.stringify({ to: "+447700900123", body: "Your code is 482913", priority }),
  });
  await response.arrayBuffer();
}

/** Offers messages evenly until the signal is aborted; the campaign pauses now and then. */
async function offer(signal) {
  for (let tick = 0; !signal.aborted; tick += 1) {
    const next = pause(20);
    const second = Math.floor(tick / 50);
    const sends = second % 20 < 15 ? Array(5).fill("low") : [];
    if ((tick * 15) % 50 < 15) sends.push("high");
    await Promise.all([next, ...sends.map(send)]);
  }
}

async function main() {
  const ending = new AbortController();
  const offering = offer(ending.signal);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const pages = [];
  for (const { name, ...look } of LOOKS) {
    const page = await (await browser.newContext(look)).newPage();
    await page.goto(base);
    pages.push([name, page]);
  }
  await pause(SECONDS * 1000);
  for (const [name, page] of pages) {
    await page.screenshot({ path: path.join(into, `${name}.png`), fullPage: name !== "lanes-phone" });
  }
  ending.abort();
  await offering;
  await browser.close();
}

main();
