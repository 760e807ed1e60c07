import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until, untilHolds } from "../harness/until.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser } from "./console/console-browser.ts";

describe.runIf(canRunChromium)("the console while its broker hangs or is away, in Chromium", () => {
  let world: RunningWorld;
  let browser: ConsoleBrowser;
  beforeAll(async () => {
    world = await embeddedWorld.start({});
    browser = await ConsoleBrowser.start();
    await world.client.open("bills");
    await world.client.publish("bills", "so that the broker is not empty");
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const view = (path: string): string => `${world.broker.url}/console/${path}`;

  it.each([
    ["", "Ready: the broker takes and delivers events."],
    ["cluster", "Ready"],
  ])("the view at /%s shows no health once the broker has not answered for 10 s", async (path, ready) => {
    const page = await browser.open(view(path));
    await page.clock.install();
    await page.reload();
    await page.getByText(ready, { exact: true }).waitFor();
    const asked = new Promise<void>((resolve) => void page.route(/health|admin/, () => resolve()));
    await page.clock.runFor(5000);
    await asked;
    await page.clock.runFor(10_000);
    await page.getByRole("alert").getByText("does not answer in time").waitFor();
    expect(await page.getByText(ready, { exact: true }).count()).toBe(0);
    await page.context().close();
  });

  it("the overview that somebody opens while the broker is away shows new events once it is back", async () => {
    const page = await browser.open(view("cluster"));
    const outage = await cutOff(page);
    await page.getByRole("link", { name: "Overview" }).click();
    const newest = page.getByRole("region", { name: "Newest events" });
    await newest.getByText(/^Reconnecting: .+ does not answer/).waitFor();
    await mark(newest);
    await outage.asksAgain('"list"');
    await outage.end();
    await newest.getByText("None since this page was opened.").waitFor();
    await world.client.publish("bills", "after the outage");
    await newest.getByText("after the outage").waitFor();
    expect(await isMarked(newest)).toBe(true);
    await page.context().close();
  });

  it("the overview of an empty broker asks again after a refusal when somebody comes back, and shows the first steps alone in an outage", async () => {
    await using empty = await embeddedWorld.start({});
    const page = await browser.open("about:blank");
    await page.route(/\/jsonrpc/, (route) => route.fulfill({ status: 404 }));
    await page.goto(`${empty.broker.url}/console/cluster`);
    const count = (name: string): Promise<number> => page.getByRole("region", { name }).count();
    const refused = page.waitForResponse(/\/jsonrpc/);
    await page.getByRole("link", { name: "Overview" }).click();
    await refused;
    await page.unrouteAll();
    await untilHolds(async () => {
      await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
      expect(await count("First steps")).toBe(1);
    });
    await page.getByRole("link", { name: "Cluster", exact: true }).click();
    await page.getByText("Ready", { exact: true }).waitFor();
    const outage = await cutOff(page, /\/jsonrpc/);
    await page.getByRole("link", { name: "Overview" }).click();
    await outage.asksAgain('"list"');
    expect([await count("First steps"), await count("Newest events")]).toEqual([1, 0]);
    await page.context().close();
  });

  it("an event that somebody opens while the broker is away appears once it is back", async () => {
    const { eventId } = await world.client.publish("bills", "opened in an outage");
    const page = await browser.open(view("cluster"));
    await page.getByText("Ready", { exact: true }).waitFor(); // Until then, the page may not listen to keys.
    const outage = await cutOff(page);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill(eventId);
    await page.keyboard.press("Enter");
    const failure = page.getByRole("article").getByRole("alert");
    await outage.isSaidOnce(failure, '"getEvent"');
    await page.unrouteAll();
    await page.getByRole("tabpanel").getByText("opened in an outage").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await page.context().close();
  });

  it("the place of an event in its block appears once the broker is back", async () => {
    const { eventId } = await world.client.publish("bills", "placed in an outage");
    const page = await browser.open(view("cluster"));
    const outage = await cutOff(page, /\/admin\/v1\/events\//);
    await page.goto(view(`events/${eventId}`));
    await page.getByText("placed in an outage").waitFor();
    await outage.asksAgain(eventId);
    await page.unrouteAll();
    await page.getByText("Place in the block").waitFor();
    await page.context().close();
  });

  it.concurrent.each([
    ["Overview", "health/ready"],
    ["Subscriptions", "admin/v1/subscriptions"],
    ["Chain", "admin/v1/groups"],
    ["Figures", "admin/v1/figures"],
  ])("the view %s that somebody opens while the broker is away says so once", async (name, path) => {
    const page = await browser.open(view("cluster"));
    await page.getByText("Ready", { exact: true }).waitFor();
    const outage = await cutOff(page);
    await page.getByRole("link", { name, exact: true }).click();
    await outage.isSaidOnce(page.getByRole("alert"), path);
    await page.context().close();
  });

  it.concurrent("the list of sessions that somebody opens while the broker is away says so once", async () => {
    const page = await browser.open(view("subscriptions"));
    const outage = await cutOff(page);
    await page.getByRole("tab", { name: "Sessions" }).click();
    await outage.isSaidOnce(page.getByRole("alert"), "admin/v1/sessions");
    await page.context().close();
  });

  it.concurrent.each([
    ["Blocks", /\/blocks\?/],
    ["Skipped entries", /\/skippedEntries\?/],
  ])("the card %s says once that the broker does not answer", async (name, urls) => {
    const page = await browser.open(view("cluster"));
    const outage = await cutOff(page, urls);
    await page.getByRole("link", { name: "Chain", exact: true }).click();
    await outage.isSaidOnce(page.getByRole("region", { name, exact: true }).getByRole("alert"), "");
    await page.context().close();
  });

  it("older blocks that somebody opens while the broker is away appear once it is back", async () => {
    const page = await browser.open(view("cluster"));
    await page.route(/blocks\?.*cursor=/, (route) => route.abort());
    await page.goto(view("chain?group=1&below=99"));
    const blocks = page.getByRole("region", { name: "Blocks" });
    await blocks
      .getByRole("alert")
      .getByText(/does not answer/)
      .waitFor();
    await page.unrouteAll();
    await blocks
      .getByRole("heading", { name: /^Block \d/ })
      .first()
      .waitFor();
    expect(await blocks.getByRole("alert").count()).toBe(0);
    await page.context().close();
  });

  it("a tail that somebody resumes while the broker is away continues without a gap once it is back", async () => {
    const page = await browser.open(view("tail?topic=bills"));
    await page.getByText(/^Live/).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText(/^Paused/).waitFor();
    await world.client.publish("bills", "during the pause");
    const outage = await cutOff(page);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText(/^Reconnecting: .+ does not answer/).waitFor();
    await outage.end();
    await page.getByText("during the pause").waitFor();
    await page.context().close();
  });
});

interface Outage {
  /** Waits until the page has asked again, with this in the URL or the body, after the two tries of a call have failed. */
  readonly asksAgain: (part: string) => Promise<void>;
  /** Expects that an alert stays while the page asks again: a screen reader would say another one again. */
  readonly isSaidOnce: (alert: Locator, part: string) => Promise<void>;
  /** Waits until several connections of a tail have failed. */
  readonly end: () => Promise<void>;
}

const anyCall = /\/(?:tail\?|jsonrpc|health|admin)/;

/** Lets no call of a page reach the broker, or none to these URLs. */
async function cutOff(page: Page, urls: RegExp = anyCall): Promise<Outage> {
  let failed = 0;
  const asked: string[] = [];
  await page.route(urls, (route) => {
    if (route.request().url().includes("/tail?")) failed += 1;
    asked.push(`${route.request().url()} ${route.request().postData() ?? ""}`);
    return route.abort();
  });
  const asksAgain = async (part: string): Promise<void> => {
    const isAsked = (): boolean => asked.filter((call) => call.includes(part)).length > 2;
    await until("the page asked again", isAsked);
  };
  return {
    asksAgain,
    isSaidOnce: async (alert, part) => {
      await alert.getByText(/does not answer/).waitFor();
      await mark(alert);
      await asksAgain(part);
      expect(await isMarked(alert)).toBe(true);
    },
    end: async () => {
      await until("three connections failed", () => failed >= 3);
      await page.unroute(urls);
    },
  };
}

/** Marks an element, so that a later one in its place can be told from it. */
function mark(element: Locator): Promise<void> {
  return element.evaluate((found) => found.setAttribute("data-marked", ""));
}

async function isMarked(element: Locator): Promise<boolean> {
  return (await element.getAttribute("data-marked")) !== null;
}
