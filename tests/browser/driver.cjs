// A browser that does what it is told, one JSON object per line on standard input, and answers each
// with one on standard output: {"ok": value} or {"error": text}. Tests tell it what to look at, and
// say themselves what is right. It needs playwright-core and axe-core (scripts/clients.sh), and
// Chromium.

const fs = require("node:fs");
const readline = require("node:readline");
const { chromium } = require("playwright-core");

const LIMIT_MS = 20_000;

let browser;
let page;
/** What the page complained of: errors, and what its policy forbids. */
let complaints = [];

const commands = {
  /** Opens a page in a window of its own; `look` has width, height, dark and still. */
  async open({ url, look = {} }) {
    await page?.context().close();
    complaints = [];
    const context = await browser.newContext({
      viewport: { width: look.width ?? 1200, height: look.height ?? 900 },
      deviceScaleFactor: look.scale ?? 1,
      colorScheme: look.dark ? "dark" : "light",
      reducedMotion: look.still ? "reduce" : "no-preference",
    });
    page = await context.newPage();
    page.setDefaultTimeout(LIMIT_MS);
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    const response = await page.goto(url);
    return response.status();
  },
  /** Waits until an expression is true in the page. (Playwright's own way needs what the page's
   * policy forbids.) */
  async wait({ until, ms }) {
    const deadline = Date.now() + (ms ?? LIMIT_MS);
    while (!(await page.evaluate(until))) {
      if (Date.now() > deadline) throw new Error(`not in time: ${until}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  },
  /** The value of an expression in the page. */
  value: ({ of }) => page.evaluate(of),
  fill: ({ selector, text }) => page.fill(selector, text),
  press: ({ key }) => page.keyboard.press(key),
  reload: async () => (await page.reload()).status(),
  /** What is not accessible, by axe: rule, gravity and where. */
  async axe() {
    await page.evaluate(fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const found = await page.evaluate(() => globalThis.axe.run(document));
    return found.violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map((node) => node.html) }));
  },
  async screenshot({ path, whole }) {
    await page.screenshot({ path, fullPage: whole ?? false });
  },
  /** What the page has complained of since it was opened. */
  complaints: () => complaints,
};

async function main() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // It shows nothing but this machine's own pages, and tests may run as root.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  browser = await chromium.launch({ executablePath, args });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { command, ...parameters } = JSON.parse(line);
    let answer;
    try {
      answer = { ok: (await commands[command](parameters)) ?? null };
    } catch (error) {
      answer = { error: String(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  await browser.close();
}

main();
