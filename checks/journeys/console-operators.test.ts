import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useReceivers } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { canRunChromium, ConsoleBrowser } from "./console/console-browser.ts";

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

  /** As a node of the chain says it, not as the proof does. */
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

  it("verifies the proof of an event in the page, and refutes it for another hash or registry", async () => {
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

    await form.getByLabel(/^Registry that you trust/).fill(`0x${"12".repeat(20)}`);
    await form.getByRole("button", { name: "Verify" }).click();
    await form.getByText("Refuted", { exact: true }).waitFor();
    expect(await statesOf(path)).toEqual(["refuted", "proven", "proven", "proven", "proven"]);
    await page.context().close();
  });

  it("gives an order to all that a search finds, after it has counted them", async () => {
    const receiver = await newReceiver();
    const ids = [];
    for (const topic of ["bills/eu", "bills/#", "bills/+"])
      ids.push(await world.client.subscribe({ topic, url: receiver.url }));
    await world.client.open("others");
    const other = await world.client.subscribe({ topic: "others", url: receiver.url });
    const page = await browser.open(view("subscriptions?prefix=bills"));
    const subject = "subscriptions: topic begins with bills";
    await page.getByRole("button", { name: `Pause ${subject}` }).click();
    await page
      .getByRole("dialog")
      .getByText(/^3 subscriptions\. 0 events wait/)
      .waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("Pause: done for 3 subscriptions.").waitFor();
    await world.client.publish("bills/eu", "held");
    await page.getByRole("button", { name: `Resume ${subject}` }).click();
    await page
      .getByRole("dialog")
      .getByText(/^3 subscriptions\. 3 events wait, and will be delivered/)
      .waitFor();
    expect(receiver.accepted()).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await receiver.waitForCount(3);
    expect(new Set(receiver.attempts.map(({ subscriptionId }) => subscriptionId))).toEqual(new Set(ids));
    expect(ids).not.toContain(other);
    await page.context().close();
  });

  it("draws the last hour, and says it in words", async () => {
    const page = await browser.open(view("figures"));
    await page.getByRole("img", { name: /^Events published: published .*\/s, at most (?!0\/s).*\/s$/ }).waitFor();
    await page.getByRole("img", { name: /^Memory: memory \d+ MiB/ }).waitFor();
    expect(await page.locator("canvas").count()).toBe(6);
    await page.context().close();
  });

  it("shows the groups, nodes and sessions of a cluster", async () => {
    const tail = await browser.open(view("tail?topic=seen/%23"));
    await tail.getByText(/^Live/).waitFor();
    const page = await browser.open(view("cluster"));
    await page.getByRole("region", { name: "Group 1" }).getByText("this node follows the chain").waitFor();
    await page.getByRole("region", { name: "Table of nodes" }).getByText("answers you").waitFor();
    await page.getByRole("row", { name: /Tail connected seen\/#/ }).waitFor();
    await tail.context().close();
    await page.getByRole("row", { name: /seen\/#/ }).waitFor({ state: "detached" });
    await page.context().close();
  });

  it("goes to a view, an event or a topic by the keyboard", async () => {
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

  it("has nothing that axe finds serious on any of these views", async () => {
    const { eventId } = await world.client.publish("bills/eu", "to prove");
    const hash = await hashOf(eventId.split("-")[2]);
    const prove = async (page: Page): Promise<void> => {
      await page.getByLabel(/^Hash of block/).fill(hash);
      await page.getByRole("button", { name: "Verify" }).click();
      await page.getByText("Verified in this browser").waitFor();
    };
    expect(await browser.examine(view(`events/${eventId}/proof`), { name: "proof", ready: prove })).toEqual([]);
    expect(await browser.examine(view("figures"), { name: "figures", ready: drawn })).toEqual([]);
    expect(await browser.examine(view("cluster"), { name: "cluster", ready: listed })).toEqual([]);
    expect(await browser.examine(view("subscriptions"), { name: "palette", ready: openPalette })).toEqual([]);
  });

  it("has broken no rule of its own policy, thrown no error and called no other server", () => {
    expect(browser.faults).toEqual([]);
  });
});

/** The mark of each link of a proof. */
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
