import { Stele } from "@stele/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { devKey } from "../harness/anvil.ts";
import type { BrokerProcess } from "../harness/broker-process.ts";
import type { Client } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import { until } from "../harness/until.ts";
import { useReceivers } from "../harness/use.ts";
import { AnvilConsole } from "./console/anvil-console.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { type ConsoleBrowser } from "./console/console-browser.ts";

describe.runIf(canRunChromium)("the console of a broker with several groups, one of them without its chain", () => {
  let world: AnvilConsole;
  let broker: BrokerProcess;
  let client: Client;
  let browser: ConsoleBrowser;
  /** A client of the second group. */
  let second: Stele;
  let eventId: string;
  const newReceiver = useReceivers();
  const groupId = "second";
  beforeAll(async () => {
    world = await AnvilConsole.start((anvil) => {
      const { STELE_GROUPS = "", ...keys } = groupsEnv([
        { id: groupId, endpoints: [anvil.url], privateKey: devKey(0), finality: "latest" },
        { id: "down", endpoints: ["http://127.0.0.1:1"], privateKey: devKey(1) },
      ]);
      const groups: unknown = JSON.parse(STELE_GROUPS);
      const all = [{ id: "1", endpoints: "embedded" }, ...(Array.isArray(groups) ? groups : [])];
      return { ...keys, STELE_GROUPS: JSON.stringify(all), STELE_CALLBACK_CONSENT: "off" };
    });
    ({ broker, client, browser } = world);
    await until("both chains are ready", async () => (await client.listGroupFailures())[1] === undefined);
    second = new Stele({ url: broker.url, groupId });
    await client.open("orders");
    await second.open("orders");
    ({ eventId } = await second.publish("orders", "of the second group"));
  });
  afterAll(async () => {
    await world[Symbol.asyncDispose]();
  });

  it("the console leads from a block to its event, the event's proof and its topic's tail in the same group", async () => {
    const page = await browser.open(`${broker.url}/console/chain?group=${groupId}`);
    await page.getByText(/^orders: event 1/).click();
    await page.getByRole("link", { name: /of the second group/ }).click();
    const event = page.getByRole("article", { name: `Event ${eventId}` });
    await event.getByText("of the second group").waitFor();
    await event.getByRole("region", { name: "Place on the chain" }).getByText("Place in the block").waitFor();
    await event.getByRole("link", { name: "Prove it" }).click();
    await page.getByText("event 1 of the batch", { exact: false }).waitFor();
    await page.getByRole("link", { name: "Event", exact: true }).click();
    await event.getByRole("link", { name: "orders" }).click();
    await page.getByText(/^Live/).waitFor();
    await page.getByLabel("Start").selectOption("with the first event");
    await page.getByRole("button", { name: "Tail" }).click();
    await page.getByRole("link", { name: /of the second group/ }).click();
    await page
      .getByRole("complementary", { name: `Event ${eventId}` })
      .getByText("Place in the block")
      .waitFor();
    await page.context().close();
  });

  it("the console leads from a subscription to the events and the topic of its group", async () => {
    const receiver = await newReceiver();
    const subscriptionId = await client.subscribe({ topic: "orders", url: receiver.url, groupId });
    const published = await second.publish("orders", "delivered");
    await receiver.waitForCount(1);
    const page = await browser.open(`${broker.url}/console/subscriptions/${subscriptionId}`);
    await page.getByRole("link", { name: published.eventId }).click();
    await page.getByRole("article").getByText("delivered", { exact: true }).waitFor();
    await page.goBack();
    const topic = page.getByRole("region", { name: "State" }).getByRole("link", { name: "orders" });
    expect(await topic.getAttribute("href")).toContain(`group=${groupId}`);
    await page.context().close();
  });

  it("the console shows no blocks if the address names an unknown group, and links to the known groups", async () => {
    const page = await browser.open(`${broker.url}/console/chain?group=other`);
    await page.getByText("The broker has no group other.").waitFor();
    expect(await page.getByRole("region", { name: "Blocks" }).count()).toBe(0);
    await page.getByRole("link", { name: `Group ${groupId}` }).click();
    await page
      .getByText(/^orders: event/)
      .first()
      .waitFor();
    await page.context().close();
  });

  it("the console says that the group without a chain has indexed no block", async () => {
    const page = await browser.open(`${broker.url}/console/cluster`);
    const down = page.getByRole("region", { name: "Group down" });
    await down.getByText(/^Cannot serve: /).waitFor();
    await down.getByText("no block yet", { exact: true }).waitFor();
    await page.context().close();
  });

  it("the console violates no rule of its Content-Security-Policy, throws no error and calls no other server", () => {
    expect(browser.faults).toEqual([]);
  });
});
