import type { CDPSession, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../harness/until.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser } from "./console/console-browser.ts";
import { publishLines } from "./console/publish-lines.ts";

/** How long the console tails events. CHECKS_CONSOLE_SECONDS=600 shows that its memory stays flat. */
const tailedSeconds = Number(process.env["CHECKS_CONSOLE_SECONDS"] ?? "4");
const eventsPerSecond = 1000;
const publishesPerSecond = 10;
const mebibyte = 2 ** 20;

/** The targets are 1 s for the first page and 50 ms for a task. These bounds leave room for other tests on the machine; the tests print the figures. */
const firstPageMsMax = 4000;
const longTaskMsMax = 500;
const growthBytesMax = 12 * mebibyte;

const watchTasks = `globalThis.longTasks = []; new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) longTasks.push(duration);
}).observe({ type: "longtask" });`;

/** Records when the page first shows the health, in milliseconds since the start of the navigation. */
const watchHealth = `new MutationObserver(() => {
  if (globalThis.shownAt === undefined && document.body?.innerText.includes("Ready: the broker")) globalThis.shownAt = performance.now();
}).observe(document, { childList: true, subtree: true, characterData: true });`;

describe.runIf(canRunChromium)("the console's speed in Chromium", () => {
  let world: RunningWorld;
  let browser: ConsoleBrowser;
  beforeAll(async () => {
    world = await embeddedWorld.start({});
    browser = await ConsoleBrowser.start();
    await world.client.open("fast");
    await world.client.publish("fast", "first");
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  it(`the console shows the first page within ${firstPageMsMax} ms with a cold cache`, async () => {
    const page = await browser.open(`${world.broker.url}/health/live`);
    await page.addInitScript(watchHealth);
    await page.goto(`${world.broker.url}/console/`);
    await page.getByText("Ready: the broker").waitFor();
    const shownAt = Number(await page.evaluate("shownAt"));
    report(`first page with health: ${Math.round(shownAt)} ms`);
    expect(shownAt).toBeLessThan(firstPageMsMax);
    await page.context().close();
  });

  it(
    `the console tails ${eventsPerSecond} events a second for ${tailedSeconds} s without a task over ${longTaskMsMax} ms, in memory that stays flat`,
    async () => {
      const page = await browser.open(`${world.broker.url}/console/tail?topic=fast`);
      await page.getByText(/^Live/).waitFor();
      const session = await page.context().newCDPSession(page);
      // Fill the page's buffer before the first measurement.
      await publishLines(world.broker.url, "fast", linesOf(11_000));
      await page.getByText(/10,000 events kept$/).waitFor();
      const before = await heapOf(session);
      await page.evaluate(watchTasks);
      const sent = await publishAtPace(world.broker.url);
      await until("the last event is shown", async () => (await lastRowOf(page)) === sent);
      const tasks = (await page.evaluate("longTasks")) as readonly number[];
      const growth = (await heapOf(session)) - before;
      const longest = Math.max(0, ...tasks);
      report(`${tasks.length} long tasks, the longest ${Math.round(longest)} ms`);
      report(`heap ${Math.round(before / mebibyte)} MiB, and ${Math.round(growth / mebibyte)} MiB more at the end`);
      expect(longest).toBeLessThan(longTaskMsMax);
      expect(growth).toBeLessThan(growthBytesMax);
      await page.context().close();
    },
    (tailedSeconds + 120) * 1000,
  );

  it("a hidden page of the console sends no request to the broker", async () => {
    const page = await browser.open(`${world.broker.url}/console/cluster`);
    await page.clock.install();
    for (const view of ["cluster", "subscriptions", "chain", "figures", ""]) {
      await page.goto(`${world.broker.url}/console/${view}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("load");
      const requests = new Requests(page);
      await setVisibility(page, "visible");
      await page.clock.runFor("00:30");
      await until(`${view} polls while it is seen`, () => requests.urls.length > 0);
      await setVisibility(page, "hidden");
      // A late answer may make the page ask once more.
      await page.clock.runFor("00:10");
      while ((await requests.takeAll()).length > 0);
      await page.clock.runFor("05:00");
      expect(await requests.takeAll(), view).toEqual([]);
      requests.stop();
    }
    await page.context().close();
  });
});

/** Path of the request that {@link Requests.takeAll} sends itself. */
const probe = "/health/live?last";

function isProbe(url: string): boolean {
  return url.endsWith(probe);
}

/** Records a page's requests, except those for tails: under the test's fast clock, heartbeats seem to be missing, and tails reconnect. */
class Requests {
  readonly urls: string[] = [];
  readonly #page: Page;
  readonly #open = new Set<Request>();
  readonly #onSent = (request: Request): void => {
    if (request.url().includes("/tail?")) return;
    this.urls.push(request.url());
    this.#open.add(request);
  };
  readonly #onEnded = (request: Request): void => void this.#open.delete(request);

  constructor(page: Page) {
    this.#page = page;
    page.on("request", this.#onSent).on("requestfinished", this.#onEnded).on("requestfailed", this.#onEnded);
  }

  /**
   * Waits until all requests are answered, and returns the URLs of those since the last call. Sends a request of its own first: once that is
   * answered, all earlier requests are recorded.
   */
  async takeAll(): Promise<readonly string[]> {
    await this.#page.evaluate(`fetch("${probe}").then((answer) => answer.text())`);
    await until("all answers have arrived", () => this.urls.some(isProbe) && this.#open.size === 0);
    return this.urls.splice(0).filter((url) => !isProbe(url));
  }

  stop(): void {
    this.#page.off("request", this.#onSent).off("requestfinished", this.#onEnded).off("requestfailed", this.#onEnded);
  }
}

function linesOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `{"order": ${index}, "note": "a line of a usual length"}`);
}

/** Publishes a batch of lines every tenth of a second, then one last line. Returns the last line. */
async function publishAtPace(url: string): Promise<string> {
  const start = performance.now();
  for (let sent = 0; sent < tailedSeconds * publishesPerSecond; sent += 1) {
    const due = start + (sent * 1000) / publishesPerSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    await publishLines(url, "fast", linesOf(eventsPerSecond / publishesPerSecond));
  }
  await publishLines(url, "fast", ["the last line"]);
  return "the last line";
}

async function lastRowOf(page: Page): Promise<string | undefined> {
  return (await page.getByRole("group", { name: "Events" }).locator("li .preview").allTextContents()).at(-1);
}

/** Bytes of the heap that are in use after a garbage collection. */
async function heapOf(session: CDPSession): Promise<number> {
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize;
}

/** Changes the page's visibility as a browser does when its user changes tabs, because headless Chromium hides no tab. */
async function setVisibility(page: Page, state: "visible" | "hidden"): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, "visibilityState", { configurable: true, value: "${state}" });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));`,
  );
}

function report(line: string): void {
  process.stdout.write(`${line}\n`);
}
