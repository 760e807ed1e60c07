import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until, untilHolds } from "../harness/until.ts";
import { useReceivers } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser, unlock } from "./console/console-browser.ts";
import { publishLines } from "./console/publish-lines.ts";

const run = promisify(execFile);
const shell = async (command: string): Promise<string> => (await run("bash", ["-c", command])).stdout;

describe.runIf(canRunChromium)("the console in Chromium (needs Debian's chromium-headless-shell)", () => {
  let world: RunningWorld;
  let browser: ConsoleBrowser;
  const newReceiver = useReceivers();
  beforeAll(async () => {
    world = await embeddedWorld.start({ env: { STELE_CALLBACK_CONSENT: "off" } });
    browser = await ConsoleBrowser.start();
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const view = (path: string): string => `${world.broker.url}/console/${path}`;

  it("the console shows commands that publish the first event, at the base address of an empty broker", async () => {
    const page = await browser.open(world.broker.url);
    expect(page.url()).toBe(view(""));
    await page.getByRole("heading", { name: "Nothing was published yet" }).waitFor();
    const commands = await page.getByRole("region", { name: "First steps" }).locator("pre").allTextContents();
    expect(commands).toHaveLength(3);
    const axe = await browser.examine(view(""), {
      name: "greeting",
      ready: (shown) => shown.getByRole("heading", { name: "Nothing was published yet" }).waitFor(),
    });
    expect(axe).toEqual([]);
    expect(await shell(commands[0] ?? "")).toBe("true");
    expect(await shell(commands[1] ?? "")).toContain('"status":"SUCCESS"');
    await page.getByRole("heading", { name: "The first event has arrived" }).waitFor();
    await page
      .getByRole("region", { name: "First steps" })
      .getByRole("link", { name: /^[0-9a-f]{8}-1-\d+$/ })
      .click();
    await page.getByRole("heading", { name: /^Event [0-9a-f]{8}-1-\d+$/ }).waitFor();
    await page.getByText("Hello, chain!", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("region", { name: "Newest events" }).waitFor();
    expect(await page.getByRole("region", { name: "First steps" }).count()).toBe(0);
    await page.context().close();
  });

  it("the console shows that the broker is ready, opens a topic and publishes to it, and copies a curl command that publishes it again", async () => {
    await world.client.open("first");
    await world.client.publish("first", "so that the broker is not empty");
    const page = await browser.open(view(""));
    await page.getByText("Ready: the broker takes and delivers events.").waitFor();
    await page.getByText(/^up to block \d+$/).waitFor();
    const form = page.getByRole("region", { name: "Publish" });
    await form.getByText("Read-only: unlock changes first").waitFor();
    expect(await form.getByRole("button", { name: "Publish" }).isDisabled()).toBe(true);
    await unlock(page);
    await form.getByLabel("Topic").fill("orders/it's new");
    await form.getByRole("textbox", { name: "Content" }).fill('{"order": 12345678901234567890, "by":');
    await form.getByLabel("The content is JSON").check();
    await form.getByText("The content is not JSON.").waitFor();
    expect(await form.getByRole("button", { name: "Publish" }).isDisabled()).toBe(true);
    await form.getByRole("textbox", { name: "Content" }).fill('{"order": 12345678901234567890, "by": "$USER"}');
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByRole("alert").getByText("100101").waitFor();
    await form.getByRole("button", { name: "Open the topic and publish" }).click();
    await form.getByText(/^Committed as/).waitFor();
    const eventId = (await form.getByRole("link", { name: /-1-\d+$/ }).textContent()) ?? "";
    await page
      .getByRole("region", { name: "Newest events" })
      .getByRole("link", { name: /it's new/ })
      .waitFor();
    const published = await world.client.getEvent(eventId);
    expect(published).toMatchObject({ topic: "orders/it's new", extensions: { "svc-format": "json" } });
    await form.getByRole("button", { name: "Copy as curl" }).click();
    const copied = await clipboardOf(page);
    const { eventId: second } = JSON.parse(await shell(copied)) as { eventId: string };
    const { topic, content } = published;
    expect(await world.client.getEvent(second)).toMatchObject({ topic, content, extensions: { "svc-format": "json" } });
    await page.context().close();
  });

  it("the console offers to open an unknown topic; if the user then enters a closed topic, its publish fails with 100112", async () => {
    await world.client.open("shut");
    await world.client.close("shut");
    const page = await browser.open(view(""));
    await unlock(page);
    const form = page.getByRole("region", { name: "Publish" });
    await form.getByLabel("Topic").fill("shuut");
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByRole("button", { name: "Open the topic and publish" }).waitFor();
    await form.getByLabel("Topic").fill("shut");
    await form.getByRole("button", { name: "Publish", exact: true }).click();
    await form.getByRole("alert").getByText("100112").waitFor();
    await page.context().close();
  });

  it("the console publishes an event only once if the broker's answer is lost and the user publishes the event again", async () => {
    await world.client.open("once");
    const page = await browser.open(view(""));
    await unlock(page);
    const form = page.getByRole("region", { name: "Publish" });
    await form.getByLabel("Topic").fill("once");
    await page.route("**/jsonrpc", async (route) => {
      if (route.request().postData()?.includes('"publish"') !== true) return route.continue();
      await route.fetch();
      return route.abort();
    });
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByText("If you publish it again unchanged, it comes only once.").waitFor();
    await page.unroute("**/jsonrpc");
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByText(/^Committed as/).waitFor();
    expect(await world.client.state("once")).toMatchObject({ sequenceNumber: 1 });
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByRole("link", { name: /-2-\d+$/ }).waitFor();
    await page.context().close();
  });

  it("the console tails a pattern, pauses and resumes without a gap, and inspects an event at its own address", async () => {
    const topic = "tail/a";
    await world.client.open(topic);
    const page = await browser.open(view("tail?topic=tail/%23"));
    await page.getByText(/^Live · 0 events/).waitFor();
    const publish = async (from: number, to: number): Promise<void> => {
      for (let index = from; index <= to; index += 1) await world.client.publish(topic, `event ${index}`);
    };
    await publish(1, 5);
    await untilHolds(async () => expect(await rowsOf(page)).toEqual(expected(5)));
    await page.getByText("Received", { exact: true }).waitFor();
    await page
      .getByTitle(/^Received \d{4}-/)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText(/^Paused at [0-9a-f]{8}-5-\d+: nothing is missed · 5 events/).waitFor();
    await publish(6, 10);
    expect(await rowsOf(page)).toEqual(expected(5));
    const link = await copyOf(page, "Copy link to this place");
    await page.getByRole("button", { name: "Resume" }).click();
    await untilHolds(async () => expect(await rowsOf(page)).toEqual(expected(10)));
    await page.goto(link);
    await untilHolds(async () => expect(await rowsOf(page)).toEqual(expected(10).slice(5)));

    await world.client.publish(topic, '{"n": 12345678901234567890}', { "svc-format": "json", "svc-by": "a test" });
    await page.getByRole("link", { name: /12345678901234567890/ }).click();
    const inspector = page.getByRole("complementary", { name: /^Event / });
    await inspector.getByRole("tab", { name: "JSON", selected: true }).waitFor();
    expect(await inspector.getByRole("tabpanel").locator("pre").textContent()).toBe(
      '{\n  "n": 12345678901234567890\n}',
    );
    await inspector.getByText("a test").waitFor();
    await inspector.getByRole("region", { name: "Place on the chain" }).getByText("11", { exact: true }).waitFor();
    const opened = page.context().waitForEvent("page");
    await page.getByRole("link", { name: /12345678901234567890/ }).click({ modifiers: ["Control"] });
    await (await opened).getByRole("heading", { name: /^Event [0-9a-f]{8}-11-/ }).waitFor();
    await inspector.getByRole("tab", { name: "JSON" }).press("ArrowLeft");
    await inspector.getByText(/^00000000 {2}7b 22/).waitFor();
    await page.reload();
    await page
      .getByRole("complementary", { name: /^Event / })
      .getByText("a test")
      .waitFor();
    await page.context().close();
  });

  it.each(["a%2Fb", "100%", "<b>&c=d?"])(
    "the console tails and inspects events of a topic with the name %s",
    async (topic) => {
      await world.client.open(topic);
      const { eventId } = await world.client.publish(topic, `of ${topic}`);
      const page = await browser.open(view(`events/${eventId}`));
      await page.getByRole("link", { name: topic, exact: true }).click();
      await page.getByText(/^Live/).waitFor();
      expect(await page.getByLabel("Topic or pattern").inputValue()).toBe(topic);
      await page.getByLabel("Start").selectOption("with the first event");
      await page.getByRole("button", { name: "Tail" }).click();
      await page.getByRole("link", { name: `of ${topic}` }).click();
      await page.getByRole("complementary", { name: `Event ${eventId}` }).waitFor();
      expect(await page.getByLabel("Topic or pattern").inputValue()).toBe(topic);
      await page.context().close();
    },
  );

  it("the console shows only events that match a content filter, and says why the broker refuses a filter", async () => {
    const page = await browser.open(view("tail?topic=filtered"));
    await world.client.open("filtered");
    await page.getByLabel("Content filter").fill('$.n == "1"');
    await page.getByRole("button", { name: "Tail" }).click();
    await page.getByText(/^Live/).waitFor();
    expect(new URL(page.url()).searchParams.get("filter")).toBe('$.n == "1"');
    for (const content of ['{"n":"0"}', '{"n":"1"}', "1"]) await world.client.publish("filtered", content);
    await untilHolds(async () => expect(await rowsOf(page)).toEqual(['{"n":"1"}']));
    await page.getByLabel("Content filter").fill("$.n =");
    await page.getByRole("button", { name: "Tail" }).click();
    await page
      .getByRole("alert")
      .getByText(/200001/)
      .waitFor();
    await page.context().close();
  });

  it("the console keeps the newest 10,000 events, renders fewer than 100 of them, and holds the visible rows in place", async () => {
    await world.client.open("many");
    const page = await browser.open(view("tail?topic=many"));
    await page.getByText(/^Live/).waitFor();
    const lines = Array.from({ length: 10_200 }, (_, index) => `line ${index}`);
    await publishLines(world.broker.url, "many", lines);
    await page.getByText(/10,000 events kept$/).waitFor();
    await untilHolds(async () => expect((await rowsOf(page)).at(-1)).toBe("line 10199"));
    expect((await rowsOf(page)).length).toBeLessThan(100);
    await page.evaluate("document.querySelector('.scroller').scrollTo({ top: 5000 * 34 })");
    await untilHolds(async () => expect(await firstVisible(page)).toBe("line 5200"));
    for (const round of [1, 2, 3, 4, 5]) {
      await publishLines(world.broker.url, "many", ["one more", "and another"]);
      await world.client.publish("many", "the last");
      await untilHolds(async () => expect(await scrollTopOf(page)).toBe((5000 - 3 * round) * 34));
      expect(await firstVisible(page)).toBe("line 5200");
    }
    await page.getByRole("button", { name: "Newest events" }).click();
    await untilHolds(async () => expect((await rowsOf(page)).at(-1)).toBe("the last"));
    await page.context().close();
  });

  it("the console keeps its header, and offers to load the page again, if the file of a view does not load", async () => {
    const page = await browser.open(view(""));
    await page.route("**/assets/chain-page-*.js", (route) => route.abort());
    await page.getByRole("link", { name: "Chain" }).click();
    await page.getByRole("heading", { name: "The view failed" }).waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText("Ready: the broker takes and delivers events.").waitFor();
    await page.goBack();
    await page.unroute("**/assets/chain-page-*.js");
    await page.getByRole("button", { name: "Load the page again" }).click();
    await page.getByRole("heading", { name: "Chain" }).waitFor();
    await page.context().close();
  });

  it("the console pauses and resumes a subscription, after it has shown the number of waiting events", async () => {
    const receiver = await newReceiver();
    await world.client.open("bills/eu");
    const id = await world.client.subscribe({ topic: "bills/#", url: receiver.url });
    await world.client.publish("bills/eu", "0");
    await receiver.waitForCount(1);
    const page = await browser.open(view("subscriptions?prefix=bills"));
    const row = page.getByRole("row", { name: /bills\/#/ });
    await row.getByText("active", { exact: true }).waitFor();
    expect(await row.getByRole("button", { name: "Pause bills/#" }).isDisabled()).toBe(true);
    await unlock(page);
    await row.getByRole("button", { name: "Pause bills/#" }).click();
    const dialog = page.getByRole("dialog", { name: "Pause: bills/#" });
    await dialog.getByText(/^0 events wait/).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await row.getByText("active", { exact: true }).waitFor();
    await row.getByRole("button", { name: "Pause bills/#" }).click();
    await dialog.getByRole("button", { name: "Pause" }).click();
    await row.getByText("paused", { exact: true }).waitFor();
    for (const content of ["1", "2", "3"]) await world.client.publish("bills/eu", content);
    await row.getByRole("cell", { name: /^3 oldest .+ ago$/ }).waitFor();
    expect(receiver.accepted()).toHaveLength(1);
    await row.getByRole("link", { name: "bills/#" }).click();
    await page.getByRole("heading", { name: "bills/#" }).waitFor();
    expect(page.url()).toBe(view(`subscriptions/${id}`));
    await page.getByRole("button", { name: "Resume bills/#" }).click();
    await page
      .getByRole("dialog")
      .getByText(/^3 events wait, and will be delivered in order/)
      .waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await receiver.waitForCount(4);
    await page.getByRole("region", { name: "State" }).getByText("active", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Last attempts" }).getByText("accepted").waitFor();
    await page.context().close();
  });

  it("the console updates how long an event has waited, even while nothing else changes", async () => {
    const receiver = await newReceiver();
    await world.client.open("aging");
    const id = await world.client.subscribe({ topic: "aging", url: receiver.url });
    await world.client.http.send({ method: "POST", path: `/admin/v1/subscriptions/${id}/pause` });
    await world.client.publish("aging", "x");
    const page = await browser.open(view("subscriptions?prefix=aging"));
    await page.clock.install();
    await page.reload();
    const row = page.getByRole("row", { name: /^aging/ });
    await row.getByRole("cell", { name: /^1 oldest (less than a|\d+) seconds? ago$/ }).waitFor();
    await page.clock.fastForward("02:00:00");
    await row.getByRole("cell", { name: "1 oldest 2 hours ago" }).waitFor();
    await page.context().close();
  });

  it("the console counts the dead letters of a subscription, and does not count them as waiting events", async () => {
    const receiver = await newReceiver((_attempt, response) => response.writeHead(422).end());
    await world.client.open("refused");
    const rule = { onFailure: "skip", attemptsMax: "1" };
    const id = await world.client.subscribe({ topic: "refused", url: receiver.url, ...rule });
    for (const content of ["1", "2"]) await world.client.publish("refused", content);
    const page = await browser.open(view(`subscriptions/${id}`));
    await page.getByRole("region", { name: "State" }).getByText("Dead letters2 events").waitFor();
    await page.getByRole("region", { name: "State" }).getByText("Waiting0 events").waitFor();
    await page.context().close();
  });

  it("the console shows why a receiver fails, and retries when the operator clicks", async () => {
    const receiver = await newReceiver((_attempt, response) => response.writeHead(500).end("no disk left"));
    await world.client.open("failing");
    const id = await world.client.subscribe({ topic: "failing", url: receiver.url });
    await world.client.publish("failing", "x");
    const page = await browser.open(view("subscriptions?prefix=failing"));
    const row = page.getByRole("row", { name: /^failing/ });
    await row.getByText(/^failing since .+ ago$/).waitFor();
    await row.getByRole("cell", { name: /^1 oldest .+ ago$/ }).waitFor();
    await row.getByRole("cell", { name: /^failed .+ ago answered 500$/ }).waitFor();
    await row.getByRole("cell", { name: /^(in \d+ (second|minute)s?|in less than a second|now)$/ }).waitFor();
    await row.getByRole("link", { name: "failing" }).click();
    expect(page.url()).toBe(view(`subscriptions/${id}`));
    await page.getByRole("region", { name: "Last attempts" }).getByText("no disk left").first().waitFor();
    receiver.setBehaviour((_attempt, response) => response.end("{}"));
    await unlock(page);
    await page.getByRole("button", { name: "Retry now failing" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Retry now" }).click();
    await receiver.waitForCount(1);
    await page.context().close();
  });

  it("the console has no serious axe violation on any view, in a light wide and a dark narrow window", async () => {
    const { eventId } = await world.client.publish("tail/a", '{"order": 7, "paid": true, "lines": [{"sku": "a-1"}]}');
    const views = [
      ["overview", "", "Ready: the broker takes"],
      ["tail", `tail?topic=tail/%23&after=OFFSET_FIRST&event=${eventId}`, "Place on the chain"],
      ["event", `events/${eventId}`, "Place on the chain"],
      ["subscriptions", "subscriptions", "Waiting"],
      ["sessions", "subscriptions?list=sessions", "Filters and identifier"],
    ] as const;
    const down = await newReceiver((_attempt, response) => response.writeHead(503).end());
    await world.client.subscribe({ topic: "tail/#", url: down.url });
    await world.client.publish("tail/a", "held");
    const tail = await browser.open(view("tail?topic=tail/%23"));
    await tail.getByText(/^Live/).waitFor();
    for (const [name, path, text] of views) {
      const ready = async (page: Page): Promise<void> => {
        await page.getByText(text).first().waitFor();
        if (name === "tail") await until("rows are shown", async () => (await rowsOf(page)).length > 5);
      };
      expect(await browser.examine(view(path), { name, ready })).toEqual([]);
    }
    await tail.context().close();
  });

  it("the console violates no rule of its Content-Security-Policy, throws no error and calls no other server", () => {
    expect(browser.faults).toEqual([]);
  });
});

function expected(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `event ${index + 1}`);
}

/** The contents in the rendered rows. */
function rowsOf(page: Page): Promise<readonly string[]> {
  return page.getByRole("group", { name: "Events" }).locator("li .preview").allTextContents();
}

/** Clicks a button that copies, and returns the clipboard. */
async function copyOf(page: Page, name: string): Promise<string> {
  await page.getByRole("button", { name }).click();
  return clipboardOf(page);
}

async function clipboardOf(page: Page): Promise<string> {
  return String(await page.evaluate("navigator.clipboard.readText()"));
}

function scrollTopOf(page: Page): Promise<unknown> {
  return page.evaluate("document.querySelector('.scroller').scrollTop");
}

/** Text of the first row that is wholly visible. In one step: the page moves its rows between two. */
function firstVisible(page: Page): Promise<unknown> {
  return page.evaluate(`{
    const list = document.querySelector("[aria-label=Events]");
    const yOf = (element) => element.getBoundingClientRect().y;
    const visible = [...list.querySelectorAll("li")].filter((row) => yOf(row) >= yOf(list) - 1);
    visible.toSorted((one, other) => yOf(one) - yOf(other))[0]?.querySelector(".preview")?.textContent;
  }`);
}
