import type { Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { untilHolds } from "../harness/until.ts";
import { useReceivers } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser, unlock } from "./console/console-browser.ts";

describe.runIf(canRunChromium)("the console's proofs and views for operators, in Chromium", () => {
  let world: RunningWorld;
  let browser: ConsoleBrowser;
  const newReceiver = useReceivers();
  beforeAll(async () => {
    world = await embeddedWorld.start({ env: { STELE_CALLBACK_CONSENT: "off" } });
    browser = await ConsoleBrowser.start();
    await world.client.open("bills/eu");
    await world.client.publish("bills/eu", "before");
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const view = (path: string): string => `${world.broker.url}/console/${path}`;

  /** The hash of a block, read from the chain and not from a proof. */
  async function hashOf(block: string | undefined): Promise<string> {
    const params = [`0x${Number(block).toString(16)}`, false];
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBlockByNumber", params });
    const answer = await world.client.http.send({
      method: "POST",
      path: "/chain",
      headers: { "content-type": "application/json" },
      body,
    });
    return (answer.json() as { result: { hash: string } }).result.hash;
  }

  it("the console verifies the proof of an event in the page, and refutes it for another hash or registry", async () => {
    const { eventId } = await world.client.publish("bills/eu", '{"total": 7}');
    const hash = await hashOf(eventId.split("-")[2]);
    const page = await browser.open(view(`events/${eventId}`));
    await page.getByRole("link", { name: "Prove it" }).click();
    const form = page.getByRole("region", { name: "Verification" });
    const path = page.getByRole("region", { name: "From the event to the block" }).getByRole("listitem");
    await form.getByRole("button", { name: "Verify" }).waitFor();
    expect(await statesOf(path)).toEqual(Array(5).fill("not checked"));

    await form.getByLabel(/^Hash of block/).fill(hash.slice(0, -1));
    await form.getByRole("button", { name: "Verify" }).click();
    await form.getByRole("alert").getByText("not a block's hash").waitFor();

    const wrong = `${hash.slice(0, -1)}${hash.endsWith("0") ? "1" : "0"}`;
    await form.getByLabel(/^Hash of block/).fill(wrong);
    await form.getByRole("button", { name: "Verify" }).click();
    await form.getByText("Refuted", { exact: true }).waitFor();
    expect((await statesOf(path)).at(-1)).toBe("refuted");

    await form.getByLabel(/^Hash of block/).fill(hash);
    await form.getByRole("button", { name: "Verify" }).click();
    await form.getByText("Verified in this browser").waitFor();
    await form.getByText("What it does not prove").waitFor();
    expect(await statesOf(path)).toEqual(Array(5).fill("proven"));

    const registry = `0x${"12".repeat(20)}`;
    const verdict = form.getByRole("status");
    expect(await verdict.textContent()).toContain(`Hash that you gave${hash}Registry that you trustany`);
    await form.getByLabel(/^Registry that you trust/).fill(registry);
    expect(await form.getByText("Verified in this browser").count()).toBe(0);
    expect(await statesOf(path)).toEqual(Array(5).fill("not checked"));
    await form.getByLabel(/^Registry that you trust/).fill("");
    await form.getByRole("button", { name: "Verify" }).click();
    await form.getByText("Verified in this browser").waitFor();
    await form.getByLabel(/^Hash of block/).fill(`0x${"1".repeat(64)}`);
    expect(await form.getByText("Verified in this browser").count()).toBe(0);
    expect(await statesOf(path)).toEqual(Array(5).fill("not checked"));

    await form.getByLabel(/^Hash of block/).fill(hash);
    await form.getByLabel(/^Registry that you trust/).fill(registry);
    await form.getByRole("button", { name: "Verify" }).click();
    await form.getByText("Refuted", { exact: true }).waitFor();
    expect(await statesOf(path)).toEqual(["refuted", "proven", "proven", "proven", "proven"]);
    expect(await verdict.textContent()).toContain(`Registry that you trust${registry}`);
    await page.context().close();
  });

  it("the console pauses and resumes all subscriptions that a search finds, after it has shown their number", async () => {
    const receiver = await newReceiver();
    const ids = [];
    for (const topic of ["bills/eu", "bills/#", "bills/+"])
      ids.push(await world.client.subscribe({ topic, url: receiver.url }));
    await world.client.open("others");
    const other = await world.client.subscribe({ topic: "others", url: receiver.url });
    const page = await browser.open(view("subscriptions?prefix=bills"));
    const subject = "subscriptions: topic begins with bills";
    await unlock(page);
    await page.getByRole("button", { name: `Pause ${subject}` }).click();
    await page
      .getByRole("dialog")
      .getByText(/^3 subscriptions\. 0 events wait/)
      .waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("Pause: done for 3 subscriptions.").waitFor();
    await world.client.publish("bills/eu", "held");
    await world.client.publish("others", "not held");
    await receiver.waitForCount(1);
    await page.getByRole("button", { name: `Resume ${subject}` }).click();
    await page
      .getByRole("dialog")
      .getByText(/^3 subscriptions\. 3 events wait, and will be delivered/)
      .waitFor();
    const called = (): readonly string[] => receiver.attempts.map(({ subscriptionId }) => subscriptionId);
    expect(called()).toEqual([other]);
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await receiver.waitForCount(4);
    expect(new Set(called())).toEqual(new Set([other, ...ids]));
    await page.context().close();
  });

  it("the console skips and replays from a place on a time line, after it has shown the number of events", async () => {
    const receiver = await newReceiver((_attempt, response) => response.writeHead(500).end());
    await world.client.open("line");
    const id = await world.client.subscribe({ topic: "line", url: receiver.url });
    const eventIds = [];
    for (const content of ["1", "2", "3", "4"]) eventIds.push((await world.client.publish("line", content)).eventId);
    const page = await browser.open(view(`subscriptions/${id}`));
    const dialog = page.getByRole("dialog");
    const exactly = dialog.getByRole("textbox", { name: "Or exactly" });

    await unlock(page);
    await page.getByRole("button", { name: "Skip line" }).click();
    await dialog.getByText(/^1 event will never be delivered/).waitFor();
    await dialog.getByRole("img", { name: /^At most [1-4] events? in one part$/ }).waitFor();
    await dialog.getByRole("slider", { name: /^Skip all up to/ }).press("End");
    await dialog.getByText(/^4 events will never be delivered/).waitFor();
    await exactly.fill(eventIds[1] ?? "");
    await dialog.getByText(/^2 events will never be delivered/).waitFor();
    await dialog.getByRole("button", { name: "Skip" }).click();
    await page.getByText("Skip: done for 1 subscription. 2 events skipped.").waitFor();
    receiver.setBehaviour((_attempt, response) => response.end("{}"));
    await page.getByRole("button", { name: "Retry now line" }).click();
    await dialog.getByRole("button", { name: "Retry now" }).click();
    await receiver.waitForCount(2);
    expect(receiver.accepted().map(({ eventId }) => eventId)).toEqual(eventIds.slice(2));

    await page.getByRole("button", { name: "Replay line" }).click();
    await dialog.getByText(/^4 events will be delivered again/).waitFor();
    await exactly.fill("4");
    await dialog.getByText(/^1 event will be delivered again/).waitFor();
    await exactly.fill("no place");
    await dialog.getByRole("alert").waitFor();
    expect(await dialog.getByRole("button", { name: "Replay" }).isDisabled()).toBe(true);
    await exactly.fill("");
    await dialog.getByText(/^4 events will be delivered again/).waitFor();
    await dialog.getByRole("button", { name: "Replay" }).click();
    await receiver.waitForCount(6);
    expect(receiver.accepted().map(({ eventId }) => eventId)).toEqual([...eventIds.slice(2), ...eventIds]);

    await page.goto(view("subscriptions?prefix=line"));
    await unlock(page);
    await page.getByRole("button", { name: "Replay subscriptions: topic begins with line" }).click();
    await dialog.getByText(/^1 subscription\. 4 events will be delivered again/).waitFor();
    await page.context().close();
  });

  it("if the answer to a skip is lost, the console says, even after Cancel, that the skip may have taken effect", async () => {
    const receiver = await newReceiver((_attempt, response) => response.writeHead(500).end());
    await world.client.open("lost");
    const id = await world.client.subscribe({ topic: "lost", url: receiver.url });
    for (const content of ["1", "2"]) await world.client.publish("lost", content);
    const page = await browser.open(view(`subscriptions/${id}`));
    await unlock(page);
    const skipped = new Promise<Route>((resolve, reject) => {
      const keep = (route: Route): Promise<void> => route.fetch().then(() => resolve(route), reject);
      page.route(/\/skip\?dryRun=false/, keep).catch(reject);
    });
    await page.getByRole("button", { name: "Skip lost" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/^1 event will never be delivered/).waitFor();
    await dialog.getByRole("button", { name: "Skip" }).click();
    const answer = await skipped;
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Pause lost" }).click();
    await answer.abort();
    const failure = page.locator("[role=alert]"); // Not by its role: the dialog hides the page behind it.
    await failure
      .getByText(/^Skip lost: .* does not answer.*The order may have taken effect: look at the subscription/)
      .waitFor();
    await dialog.getByText(/^1 event waits/).waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Waiting1 event").waitFor();
    await page.context().close();
  });

  it("if an order fails, the console keeps its dialog with the chosen place, so that somebody can give the order again", async () => {
    const receiver = await newReceiver();
    await world.client.open("busy");
    const id = await world.client.subscribe({ topic: "busy", url: receiver.url });
    for (const content of ["1", "2"]) await world.client.publish("busy", content);
    await receiver.waitForCount(2);
    const page = await browser.open(view(`subscriptions/${id}`));
    await unlock(page);
    const busy = { code: 200300, status: 503, title: "busy", detail: "service busy", retry: false };
    const givenOrder = /\/replay\?dryRun=false/;
    await page.route(givenOrder, (route) =>
      route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(busy) }),
    );
    await page.getByRole("button", { name: "Replay busy" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Or exactly" }).fill("2");
    await dialog.getByText(/^1 event will be delivered again/).waitFor();
    await dialog.getByRole("button", { name: "Replay" }).click();
    await dialog.getByRole("alert").getByText("service busy (200300).").waitFor();
    expect(await page.locator(".outcome").textContent()).toBe("");
    await page.unroute(givenOrder);
    await dialog.getByText(/^1 event will be delivered again/).waitFor();
    await dialog.getByRole("button", { name: "Replay" }).click();
    await page.getByText("Replay: done for 1 subscription. 1 event to deliver again.").waitFor();
    await dialog.waitFor({ state: "detached" });
    await page.context().close();
  });

  it("the console fills in a publish from a template, or from a link to a draft, which publishes nothing by itself", async () => {
    const page = await browser.open(view(""));
    const form = page.getByRole("region", { name: "Publish" });
    await form.getByLabel("Template").selectOption("An order");
    expect(await form.getByLabel("Topic").inputValue()).toBe("orders/eu");
    expect(await form.getByLabel("The content is JSON").isChecked()).toBe(true);
    await form.getByLabel("Topic").fill("drafted");
    await form.getByRole("textbox", { name: "Content" }).fill('{"a": "&#+"}');
    await form.getByRole("button", { name: "Copy link to this draft" }).click();
    const link = String(await page.evaluate("navigator.clipboard.readText()"));
    await form.getByLabel("Topic").fill("edited");
    await page.goto(link);
    await untilHolds(async () => expect(await form.getByLabel("Topic").inputValue()).toBe("drafted"));
    await page.context().close();
    await world.client.open("drafted");
    const other = await browser.open(link);
    const filled = other.getByRole("region", { name: "Publish" });
    expect(await filled.getByLabel("Topic").inputValue()).toBe("drafted");
    for (const [name, text] of [
      ["curl", "drafted"],
      ["TypeScript", "drafted"],
      ["stele", "drafted"],
      ["mosquitto_pub", "# The broker serves no MQTT without TLS."],
    ] as const) {
      await filled.getByRole("tab", { name }).click();
      await filled.getByRole("button", { name: `Copy as ${name}` }).click();
      await untilHolds(async () => expect(await other.evaluate("navigator.clipboard.readText()")).toContain(text));
    }
    expect((await world.client.state("drafted")).sequenceNumber).toBe(0);
    await unlock(other);
    await filled.getByRole("button", { name: "Publish", exact: true }).click();
    await filled.getByText(/^Committed as/).waitFor();
    expect((await world.client.state("drafted")).sequenceNumber).toBe(1);
    await other.context().close();
  });

  it("the console draws the figures of the last hour, and describes them in words", async () => {
    const page = await browser.open(view("figures"));
    await page.getByRole("img", { name: /^Events published: published .*\/s, at most (?!0\/s).*\/s$/ }).waitFor();
    await page.getByRole("img", { name: /^Memory: memory \d+ MiB/ }).waitFor();
    expect(await page.locator("canvas").count()).toBe(7);
    await page.context().close();
  });

  it("the console shows the groups and nodes of a cluster, and finds sessions by a search", async () => {
    const tail = await browser.open(view("tail?topic=seen/%23"));
    await tail.getByText(/^Live/).waitFor();
    const page = await browser.open(view("cluster"));
    await page.getByRole("region", { name: "Group 1" }).getByText("this node follows the chain").waitFor();
    await page.getByRole("region", { name: "Table of nodes" }).getByText("answers you").waitFor();
    await page.getByRole("link", { name: "Sessions of MQTT, STOMP and tails" }).click();
    await page.getByRole("row", { name: /^seen\/# .+ Tail connected 0/ }).waitFor();
    await page.getByLabel("Protocol").selectOption("Tail");
    await page.getByLabel("Connection").selectOption("connected");
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForURL(view("subscriptions?list=sessions&kind=Tail&connected=true"));
    await page.getByRole("row", { name: /^seen\/#/ }).waitFor();
    await page.getByLabel("Protocol").selectOption("MQTT");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("No session of MQTT, STOMP or a tail matches.").waitFor();
    await page.goBack();
    await page.getByRole("row", { name: /^seen\/#/ }).waitFor();
    await tail.context().close();
    await page.getByRole("row", { name: /^seen\/#/ }).waitFor({ state: "detached" });
    await page.getByRole("tab", { name: "Callbacks" }).click();
    await page.waitForURL(view("subscriptions"));
    await page.getByLabel("Topic begins with").waitFor();
    await page.context().close();
  });

  it("the console shows blocks with transactions and decoded events, skipped entries, and rollbacks", async () => {
    await world.client.open("decoded");
    const { eventId } = await world.client.publish("decoded", "seen in its block");
    const page = await browser.open(view("chain"));
    const blocks = page.getByRole("region", { name: "Blocks" });
    const newest = blocks.getByRole("listitem").filter({ hasText: "decoded" });
    await newest.getByText(/^Transaction 0x[0-9a-f]{64}/).waitFor();
    await newest.getByText(/^decoded: event 1/).click();
    await newest.getByRole("link", { name: /seen in its block/ }).click();
    await page.waitForURL(view(`events/${eventId}?group=1`));
    await page.goto(view(`chain?group=1&below=${eventId.split("-")[2]}`));
    await page.getByRole("heading", { name: /^Blocks below/ }).waitFor();
    expect(await blocks.getByText("decoded:").count()).toBe(0);
    await page.getByRole("region", { name: "Skipped entries" }).getByText(/^None/).waitFor();
    await page
      .getByRole("region", { name: "Rollbacks" })
      .getByText(/^No reorg has removed/)
      .waitFor();
    await page.context().close();
  });

  it("the console opens a view, or a search for a topic, by the keyboard", async () => {
    const page = await browser.open(view(""));
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("Control+K");
    await page.getByRole("combobox", { name: /^View/ }).fill("sub");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Subscriptions" }).waitFor();
    await page.keyboard.press("Control+K");
    await page.getByRole("combobox", { name: /^View/ }).fill("bills/#");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(view("subscriptions?prefix=bills%2F"));
    await page.keyboard.press("Control+K");
    await page.getByRole("dialog", { name: "Go to" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.context().close();
  });

  it("the console has no serious axe violation in a proof, figures, chain, cluster, the palette and a time line", async () => {
    const { eventId } = await world.client.publish("bills/eu", "to prove");
    const hash = await hashOf(eventId.split("-")[2]);
    const prove = async (page: Page): Promise<void> => {
      await page.getByLabel(/^Hash of block/).fill(hash);
      await page.getByRole("button", { name: "Verify" }).click();
      await page.getByText("Verified in this browser").waitFor();
    };
    expect(await browser.examine(view(`events/${eventId}/proof`), { name: "proof", ready: prove })).toEqual([]);
    expect(await browser.examine(view("figures"), { name: "figures", ready: drawn })).toEqual([]);
    expect(await browser.examine(view("chain"), { name: "chain", ready: decoded })).toEqual([]);
    expect(await browser.examine(view("cluster"), { name: "cluster", ready: listed })).toEqual([]);
    expect(await browser.examine(view("subscriptions"), { name: "palette", ready: openPalette })).toEqual([]);
    const line = { name: "time-line", ready: openTimeLine };
    expect(await browser.examine(view("subscriptions?prefix=line"), line)).toEqual([]);
  });

  it("the console violates no rule of its Content-Security-Policy, throws no error and calls no other server", () => {
    expect(browser.faults).toEqual([]);
  });
});

/** The text of the badge of each step of a proof. */
function statesOf(path: ReturnType<Page["locator"]>): Promise<readonly string[]> {
  return path.locator(".badge").allTextContents();
}

function drawn(page: Page): Promise<void> {
  return page.getByRole("img", { name: /^Memory/ }).waitFor();
}

function listed(page: Page): Promise<void> {
  return page.getByText("answers you").waitFor();
}

async function openPalette(page: Page): Promise<void> {
  await page.getByRole("heading", { name: "Subscriptions" }).waitFor();
  await page.keyboard.press("Control+K");
  await page.getByRole("combobox", { name: /^View/ }).fill("bills");
}

async function decoded(page: Page): Promise<void> {
  await page.getByRole("region", { name: "Blocks" }).locator("summary").first().click();
  await page.getByRole("region", { name: "Blocks" }).locator("details a").first().waitFor();
}

async function openTimeLine(page: Page): Promise<void> {
  await page.getByRole("link", { name: "line" }).click();
  await unlock(page);
  await page.getByRole("button", { name: "Replay line" }).click();
  await page.getByRole("dialog").getByRole("img", { name: "At most" }).waitFor();
}
