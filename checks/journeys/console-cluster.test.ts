import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Cluster } from "../harness/cluster.ts";
import { hasPostgres, titleOf } from "../harness/postgres.ts";
import { until } from "../harness/until.ts";
import { useReceivers } from "../harness/use.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser, unlock } from "./console/console-browser.ts";

const takeOverMs = 60_000;

describe.runIf(canRunChromium && hasPostgres)(titleOf("the console of three nodes, in Chromium"), () => {
  let cluster: Cluster;
  let browser: ConsoleBrowser;
  const newReceiver = useReceivers();
  beforeAll(async () => {
    cluster = await Cluster.start({ env: { STELE_CALLBACK_CONSENT: "off" } });
    browser = await ConsoleBrowser.start();
    await cluster.client.open("flow/a");
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  const openAt = (index: number, path: string): Promise<Page> =>
    browser.open(`${cluster.nodes[index]?.url}/console/${path}`);

  it("the console shows on each node the events that any node published, in one order, and the health of the group", async () => {
    const pages = await Promise.all([0, 1, 2].map((index) => openAt(index, "tail?topic=flow/%23")));
    for (const page of pages) await page.getByText(/^Live/).waitFor();
    const contents = Array.from({ length: 12 }, (_, index) => `event ${index}`);
    for (const content of contents) await cluster.client.publish("flow/a", content);
    for (const page of pages) {
      const rows = page.getByRole("group", { name: "Events" }).locator("li .preview");
      await until("all events are shown", async () => (await rows.count()) === contents.length);
      expect(await rows.allTextContents()).toEqual(contents);
      await page.getByRole("link", { name: "Overview" }).click();
      await page.getByText("Ready: the broker takes and delivers events.").waitFor();
      await page.context().close();
    }
  });

  it("an operator pauses and replays a subscription at one node; another node shows the pause, and resumes the subscription", async () => {
    const receiver = await newReceiver();
    const id = await cluster.client.subscribe({ topic: "flow/#", url: receiver.url });
    const [one, other] = await Promise.all([0, 1].map((index) => openAt(index, `subscriptions/${id}`)));
    if (one === undefined || other === undefined) throw new Error("no pages");
    await unlock(one);
    await one.getByRole("button", { name: "Pause flow/#" }).click();
    await one.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await other.getByRole("region", { name: "State" }).getByText("paused", { exact: true }).waitFor();
    for (const content of ["held 1", "held 2"]) await cluster.client.publish("flow/a", content);
    await unlock(other);
    await other.getByRole("button", { name: "Resume flow/#" }).click();
    await other
      .getByRole("dialog")
      .getByText(/^2 events wait/)
      .waitFor();
    await other.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await receiver.waitForCount(2);
    // The replay dialog counts events up to the stored cursor. The node that delivers knows the progress at once; the others read the stored cursor.
    await until("every node counts no waiting event", async () => {
      const entries = await Promise.all(cluster.nodes.map(({ client }) => client.findSubscription(id)));
      return entries.every((entry) => entry?.notifyingEventCount === "0");
    });
    await one.getByRole("button", { name: "Replay flow/#" }).click();
    await one
      .getByRole("dialog")
      .getByText(/^14 events will be delivered again/)
      .waitFor();
    await one.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
    await receiver.waitForCount(16);
    await one.context().close();
    await other.context().close();
  });

  it("the console names the node that follows the chain, and shows which node takes over when that node is killed", async () => {
    const roles = await Promise.all(
      [0, 1, 2].map(async (index) => {
        const page = await openAt(index, "cluster");
        await until("all nodes are listed", async () => (await nodes(page).count()) === 3);
        const follows = await page.getByText("this node follows the chain").count();
        await page.context().close();
        return follows;
      }),
    );
    expect(roles.toSorted((left, right) => left - right)).toEqual([0, 0, 1]);
    const follower = roles.indexOf(1);
    const watcher = (follower + 1) % 3;
    const clusterUrl = `${cluster.nodes[watcher]?.url}/console/cluster`;
    expect(await browser.examine(clusterUrl, { name: "three-nodes", ready })).toEqual([]);
    const page = await openAt(watcher, "cluster");
    await cluster.nodes[follower]?.kill();
    await until("two nodes are left", async () => (await nodes(page).count()) === 2, { timeoutMs: takeOverMs });
    const last = await openAt((follower + 2) % 3, "cluster");
    const follows = async (): Promise<number> => {
      const counts = [page, last].map((one) => one.getByText("this node follows the chain").count());
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
    };
    await until("another node follows", async () => (await follows()) === 1, { timeoutMs: takeOverMs });
    const history = page.getByRole("region", { name: "History" });
    const gone = cluster.nodes[follower]?.address ?? "";
    await history.getByText(`${gone} is gone`).waitFor();
    await history.getByText(`took over the index of group 1 from ${gone}`).waitFor();
    expect(await nodes(page).filter({ hasText: "group 1" }).count()).toBe(1);
    await last.goto(`${cluster.nodes[(follower + 2) % 3]?.url}/console/chain`);
    await last
      .getByRole("region", { name: "Blocks" })
      .getByText(/^flow\/a: event/)
      .first()
      .waitFor();
  });

  it("the console violates no rule of its Content-Security-Policy, throws no error and calls no other server", () => {
    expect(browser.faults).toEqual([]);
  });
});

function nodes(page: Page): ReturnType<Page["getByRole"]> {
  return page.getByRole("region", { name: "Table of nodes" }).locator("tbody").getByRole("row");
}

function ready(page: Page): Promise<void> {
  return page.getByText("answers you").waitFor();
}
