import { Stele } from "@stele/client";
import type { Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { privateKeyToAccount } from "viem/accounts";
import { batchOf, Stranger } from "../faults/support/stranger.ts";
import { type Anvil, devKey } from "../harness/anvil.ts";
import type { BrokerProcess } from "../harness/broker-process.ts";
import type { Client } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import { until } from "../harness/until.ts";
import { AnvilConsole } from "./console/anvil-console.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { type ConsoleBrowser } from "./console/console-browser.ts";

const stranger = privateKeyToAccount(devKey(5)).address.toLowerCase();

describe.runIf(canRunChromium)("the console of a chain with other writers and reorgs", () => {
  let world: AnvilConsole;
  let anvil: Anvil;
  let broker: BrokerProcess;
  let client: Client;
  let browser: ConsoleBrowser;
  beforeAll(async () => {
    world = await AnvilConsole.start(({ url }) => {
      const group = { id: "1", endpoints: [url], privateKey: devKey(0), finality: "latest", pollMs: 50 };
      return { ...groupsEnv([group]), STELE_LOG_LEVEL: "warn", STELE_CONSOLE_CHAIN_NODES: url };
    });
    ({ anvil, broker, client, browser } = world);
    await until("the broker is ready", () => client.isReady());
    await client.open("x/a");
    await anvil.request("anvil_mine", ["0x14"]);
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  it("the console names the account of each skipped entry, and the account that published the events", async () => {
    const page = await browser.open(`${broker.url}/console/chain`);
    const other = new Stranger(anvil.url);
    await other.publish(batchOf("x/a", ["first", "second"], { count: 3 }), batchOf("x/a", ["good"]));
    const skipped = page.getByRole("region", { name: "Skipped entries" });
    const row = skipped.getByRole("row", { name: /wrong-count/ });
    await row.getByRole("cell", { name: stranger }).waitFor();
    await page.getByRole("region", { name: "Blocks" }).getByText(`by ${stranger}`).waitFor();
    await page.getByText(/^x\/a: event 4/).click();
    await page.getByRole("link", { name: /good/ }).waitFor();
    await page.context().close();
  });

  it("the console shows the events of a batch even if the broker cannot give the event before it", async () => {
    await client.open("x/b");
    for (const content of ["before the batch", "in the batch"]) await client.publish("x/b", content);
    const page = await browser.open(`${broker.url}/console/chain`);
    await page.route(/\/events\?.*cursor=/, (route) =>
      route.fulfill({ status: 500, json: { code: 200208, detail: "damaged" } }),
    );
    await page.getByText(/^x\/b: event 2/).click();
    await page.getByRole("link", { name: /in the batch/ }).waitFor();
    await page.context().close();
  });

  it("if a reorg has replaced the transaction of a batch, the console reads the batch and each of its events again", async () => {
    await client.open("x/c");
    const { eventId } = await client.publish("x/c", "before the reorg");
    const page = await browser.open(`${broker.url}/console/chain`);
    const asked = countAsked(page, eventId);
    const batch = page.getByText(/^x\/c: event 1/);
    await batch.click();
    await visitEvent(page, "before the reorg");
    await page.getByRole("link", { name: "Chain", exact: true }).click();
    const other = `0x${"12".repeat(32)}`;
    await page.route(/\/v1\/blocks\?/, (route) =>
      replace(route, (text) => text.replaceAll(/(?<="transactionHash":")0x[0-9a-f]{64}/g, other)),
    );
    await page.route(/\/events\?|\/jsonrpc$/, (route) =>
      replace(route, (text) => text.replace(toBase64("before the reorg"), toBase64("after the reorg"))),
    );
    await page.getByText(other).first().waitFor();
    await batch.click();
    await visitEvent(page, "after the reorg");
    expect(asked).toEqual({ getEvent: 2, place: 2, getProof: 2 });
    await page.unrouteAll({ behavior: "wait" }); // Otherwise a poll that waits for its answer would fail when the page closes.
    await page.context().close();
  });

  it("if a tail has shown an event, the console reads it again when somebody opens the view of that event", async () => {
    await client.open("x/d");
    const { eventId } = await client.publish("x/d", "before the reorg");
    const page = await browser.open(`${broker.url}/console/tail?topic=x%2Fd&after=OFFSET_FIRST&event=${eventId}`);
    await page.getByRole("tabpanel").getByText("before the reorg").waitFor();
    await page.route(/\/events\?|\/jsonrpc$/, (route) =>
      replace(route, (text) => text.replace(toBase64("before the reorg"), toBase64("after the reorg"))),
    );
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").fill(eventId);
    await page.keyboard.press("Enter");
    await page.getByRole("tabpanel").getByText("after the reorg").waitFor();
    await page.unrouteAll({ behavior: "wait" });
    await page.context().close();
  });

  it("the console verifies a proof with the block hash of a node that the operator names, and says that it relies on that node", async () => {
    const { eventId } = await client.publish("x/a", "to prove");
    const page = await browser.open(`${broker.url}/console/events/${eventId}/proof`);
    const { host } = new URL(anvil.url);
    await page.getByRole("button", { name: `Ask ${host}` }).click();
    await page.getByText("Verified in this browser").waitFor();
    await page.getByText(`Hash from ${host}`).waitFor();
    await page.getByText(`this rests on the node ${host}, which the operator of this broker named`).waitFor();
    await page.getByLabel(/^Registry that you trust/).fill(`0x${"12".repeat(20)}`);
    await page.getByRole("button", { name: `Ask ${host}` }).click();
    await page.getByText("Refuted", { exact: true }).waitFor();
    await page.context().close();
  });

  it("the console refuses to verify a proof of another event than the requested one", async () => {
    const stele = new Stele({ url: broker.url });
    const outcomes = await stele.publishMany(["asked for", "other"].map((content) => ({ topic: "x/a", content })));
    const [eventId = "", other = ""] = outcomes.map((outcome) =>
      outcome.status === "published" ? outcome.eventId : "",
    );
    const page = await browser.open(`${broker.url}/console`);
    await page.route("**/jsonrpc", (route) =>
      route.continue({ postData: (route.request().postData() ?? "").replaceAll(eventId, other) }),
    );
    await page.goto(`${broker.url}/console/events/${eventId}/proof`);
    await page.getByText(`the broker returned a proof of ${other} instead`).waitFor();
    expect(await page.getByRole("button", { name: "Verify" }).count()).toBe(0);
    await page.context().close();
  });

  it("the console shows a rollback on a time line, and describes it in words", async () => {
    for (const content of ["1", "2", "3"]) await client.publish("x/a", content);
    const page = await browser.open(`${broker.url}/console/chain`);
    const rollBacks = page.getByRole("region", { name: "Rollbacks" });
    await rollBacks.getByText("No reorg has removed an indexed block.").waitFor();
    await anvil.request("anvil_reorg", [3, []]);
    await rollBacks.getByText(/^1 rollback of the index since it began; 1 seen/).waitFor();
    await rollBacks.getByRole("img", { name: /^1 rollback, the deepest of \d+ blocks?$/ }).waitFor();
    await rollBacks.getByText(/from block \d+ to block \d+; \d events? removed/).waitFor();
    expect(await browser.examine(`${broker.url}/console/chain`, { name: "chain-of-others", ready })).toEqual([]);
    await page.context().close();
  });

  it("once a reorg has removed an event, its details beside the tail say that it does not exist", async () => {
    const page = await browser.open(`${broker.url}/console/tail?topic=x/a`);
    await page.getByText(/^Live/).waitFor();
    await client.publish("x/a", "removed");
    await page.getByRole("link", { name: "removed" }).click();
    const details = page.getByRole("complementary");
    await details.getByRole("tabpanel").getByText("removed", { exact: true }).waitFor();
    await anvil.request("anvil_reorg", [3, []]);
    await details
      .getByRole("alert")
      .getByText(/10030[34]/)
      .waitFor();
    await page.context().close();
  });

  it("the console has no errors, no violations of its policy, and no requests to servers other than the named node", () => {
    expect(browser.faults.filter((fault) => !fault.startsWith(`request: ${anvil.url}`))).toEqual([]);
  });
});

/** Gives the page a changed answer of the broker. */
async function replace(route: Route, change: (text: string) => string): Promise<void> {
  const text = await (await route.fetch()).text();
  await route.fulfill({ body: change(text), contentType: "application/json" });
}

/** Opens an event from its batch, and then its proof. */
async function visitEvent(page: Page, content: string): Promise<void> {
  await page.getByRole("link", { name: content }).click();
  await page.getByRole("tabpanel").getByText(content, { exact: true }).waitFor();
  await page.getByText("Place in the block").waitFor();
  await page.getByRole("link", { name: "Prove it" }).click();
  await page.getByRole("button", { name: "Copy the proof" }).waitFor();
}

/** How often a page asks for an event, its place in its block, and its proof. */
function countAsked(page: Page, eventId: string): Readonly<Record<"getEvent" | "place" | "getProof", number>> {
  const asked = { getEvent: 0, place: 0, getProof: 0 };
  page.on("request", (request) => {
    if (request.url().includes(`/admin/v1/events/${eventId}`)) asked.place += 1;
    const body = request.postData() ?? "";
    for (const method of ["getEvent", "getProof"] as const) if (body.includes(`"${method}"`)) asked[method] += 1;
  });
  return asked;
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function ready(page: Page): Promise<void> {
  return page.getByText("wrong-count").waitFor();
}
