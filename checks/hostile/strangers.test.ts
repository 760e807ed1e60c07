import { toHex } from "viem";
import { describe, expect, it } from "vitest";
import { ChainProxy, pass, type Treatment } from "../faults/support/chain-proxy.ts";
import { answer } from "../faults/support/chain-treatments.ts";
import { PublishLoad } from "../faults/support/publish-load.ts";
import { removeStore } from "../faults/support/remove-store.ts";
import { expectFound, placeOf } from "../faults/support/replay.ts";
import { batchOf, listSkipped, type RawEvent, Stranger } from "../faults/support/stranger.ts";
import { devKey, startAnvil } from "../harness/anvil.ts";
import { startBroker } from "../harness/broker-process.ts";
import { Client, codeOf } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import { startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { forgerOfContracts, forgerOfLogs } from "./support/forger.ts";
import { peakMebibytes } from "./support/process-memory.ts";

const topics = ["x/a", "x/b"];
/** Logs in one block. Their 70 MB are more than the broker reads in one answer. */
const forgedLogs = 165_000;
const forgedContracts = 400;
const logsMax = 10_000;
const blockGas = ["--gas-limit", "2000000000", "--no-request-size-limit"];
/** When a block cannot be read, a broken broker lets each publish wait this long. */
const publishTimeoutMs = 8_000;
const memoryMebibytesMax = 512;

/** A batch for no topic. The registry rejects it, for 3,500 gas. */
const emptyBatch = {
  topic: toHex(0, { size: 20 }),
  count: 0,
  eventsRoot: toHex(0, { size: 32 }),
  events: "0x",
} as const;
const content = (bytes: number): RawEvent => ({ content: new Uint8Array(bytes), extensions: [] });
const withKey = (key: string): RawEvent => ({ content: Buffer.from("a"), extensions: [[key, "1"]] });

/** Refuses every request for logs or receipts. */
const refuseLogs: Treatment = (passage) =>
  passage.calls.some(({ method }) => method === "eth_getLogs" || method === "eth_getBlockReceipts")
    ? answer(passage, { error: { code: -32_005, message: "query returned more than 10000 results" } })
    : pass(passage);

/** Refuses answers with more logs than hosted endpoints return. */
const limitLogs: Treatment = async (passage) => {
  const [call] = passage.calls;
  if (call?.method !== "eth_getLogs") return pass(passage);
  const result = (await passage.ask(call.method, call.params)) as readonly unknown[]; // Result of the method.
  const error = { code: -32_005, message: `query returned more than ${logsMax} results` };
  return answer(passage, result.length > logsMax ? { error } : { result });
};

function envOf(url: string): Record<string, string> {
  const env = groupsEnv([{ id: "1", endpoints: [url], privateKey: devKey(0), pollMs: 50, publishTimeoutMs }]);
  return { ...env, STELE_LOG_LEVEL: "warn" };
}

function expectAscending(sequences: readonly number[]): void {
  expect(sequences).toEqual(sequences.toSorted((left, right) => left - right));
}

describe("another account on the chain", () => {
  it("an account that writes 165,000 logs with our event signature into a block blocks nobody, and no event of that block is missed", async () => {
    await using anvil = await startAnvil({ blockTimeS: 0.5, args: blockGas });
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    await using broker = await startBroker({ dataDir: folder.path, env: envOf(anvil.url) });
    await using client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady());
    for (const topic of topics) await client.open(topic);
    await client.subscribe({ topic: "#", url: receiver.url });
    const load = new PublishLoad(topics, { publishersPerTopic: 4 });
    load.start(broker.url);
    await until("events are published", () => load.acknowledged.size >= 8);

    const stranger = new Stranger(anvil.url);
    await anvil.request("evm_setIntervalMining", [0]); // No block comes between the three transactions.
    await stranger.send({ data: forgerOfLogs(forgedLogs), gas: 400_000_000n });
    await stranger.sendOpen("x/new", 1_000_000n);
    const hash = await stranger.sendPublish([batchOf("x/new", ["beside the forged logs"])], 1_000_000n);
    await anvil.request("evm_setIntervalMining", [1]);
    const blockNumber = await stranger.untilMined(hash);
    const { size } = load.acknowledged;
    await until("publishing continues", () => load.acknowledged.size > size + 16);
    await load.stop();

    expect(load.refusals).toEqual([]);
    expect(await client.listGroupFailures()).toEqual([undefined]);
    await receiver.waitForCount(load.acknowledged.size + 1);
    const delivered = receiver.accepted();
    expect(delivered).toHaveLength(load.acknowledged.size + 1);
    const [other] = delivered.filter(({ topic }) => topic === "x/new");
    expect(placeOf(other?.eventId ?? "")).toEqual({ sequence: 1, blockNumber });
    for (const topic of topics) {
      expectAscending(delivered.filter((one) => one.topic === topic).map(({ eventId }) => placeOf(eventId).sequence));
    }
    await expectFound(client, load.acknowledged.values());
    const proof = await client.http.send({ method: "GET", path: `/rest/proof?eventId=${other?.eventId}` });
    expect(proof.json()).toMatchObject({ code: 200206, message: expect.stringContaining("its receipts are longer") });
    expect(peakMebibytes(broker.pid)).toBeLessThan(memoryMebibytesMax);
    expect(broker.stdout()).not.toContain("block not read");
    expect((await broker.stop()).code).toBe(0);
  });

  it("an account's block that the endpoint does not return stops publishes, and health names the block, until the endpoint returns it", async () => {
    await using anvil = await startAnvil({ blockTimeS: 0.5, args: blockGas });
    await using proxy = await ChainProxy.start(anvil.url);
    using folder = createTempFolder();
    await using broker = await startBroker({ dataDir: folder.path, env: envOf(proxy.url) });
    await using client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady());
    await client.open("x/a");
    const stranger = new Stranger(anvil.url);

    proxy.treat(refuseLogs);
    const blockNumber = await stranger.untilMined(await stranger.sendPublish([batchOf("x/a", ["1"])], 1_000_000n));
    const [reason] = await until("health reports the unreadable block", async () => {
      const failures = await client.listGroupFailures();
      return failures[0] !== undefined && failures;
    });
    expect(reason).toMatch(
      new RegExp(`^cannot read block ${blockNumber}: eth_getLogs: query returned more than 10000 results \\(since 20`),
    );
    const startedAt = performance.now();
    expect(await codeOf(client.publish("x/a", "refused"))).toBe(200205);
    expect(performance.now() - startedAt).toBeLessThan(publishTimeoutMs / 2);
    expect(broker.stdout().match(/block not read/g)).toHaveLength(1);

    proxy.treat(pass);
    await until("the broker is ready", () => client.isReady());
    expect((await client.publish("x/a", "2")).status).toBe("SUCCESS");
    expect((await client.state("x/a")).sequenceNumber).toBe(2);

    // Each of these contracts writes one log with our event signature. The broker must not make a call for each of them.
    const calls = proxy.counts.get("eth_call") ?? 0;
    await stranger.send({ data: forgerOfContracts(forgedContracts), gas: 100_000_000n });
    await stranger.untilMined(await stranger.sendPublish([batchOf("x/a", ["3"])], 1_000_000n));
    await client.publish("x/a", "4");
    expect((proxy.counts.get("eth_call") ?? 0) - calls).toBeLessThan(forgedContracts / 10);
  });

  it("an account whose rejected batches in one block exceed the endpoint's log limit blocks nobody", async () => {
    await using anvil = await startAnvil({ args: blockGas });
    await using proxy = await ChainProxy.start(anvil.url);
    proxy.treat(limitLogs);
    using folder = createTempFolder();
    await using broker = await startBroker({ dataDir: folder.path, env: envOf(proxy.url) });
    await using client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady());
    await client.open("x/a");
    const stranger = new Stranger(anvil.url);
    await stranger.untilMined(
      await stranger.sendPublish(
        Array.from({ length: logsMax + 1 }, () => emptyBatch),
        50_000_000n,
      ),
    );
    expect((await client.publish("x/a", "ours")).status).toBe("SUCCESS");
    expect(await client.listGroupFailures()).toEqual([undefined]);
  });

  it("an account's events that no broker may publish are skipped and listed, even after a rebuild", async () => {
    await using anvil = await startAnvil({ args: blockGas });
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    const env = envOf(anvil.url);
    const stranger = new Stranger(anvil.url);
    const bad: readonly (readonly RawEvent[])[] = [
      [content(300_000)],
      [content(3_000_000)],
      [withKey("destination")],
      ["good", withKey("__proto__")],
      [{ content: Buffer.from("a"), extensions: [["svc-a", "a".repeat(20_000)]] }],
      Array.from({ length: 12 }, () => content(100_000)),
    ];
    let before: unknown;
    {
      await using broker = await startBroker({ dataDir: folder.path, env });
      await using client = new Client(broker.url);
      await until("the broker is ready", () => client.isReady());
      await client.open("x/a");
      await client.subscribe({ topic: "#", url: receiver.url });
      for (const events of bad) {
        await stranger.untilMined(await stranger.sendPublish([batchOf("x/a", events)], 500_000_000n));
        expect((await client.publish("x/a", "ours")).status).toBe("SUCCESS");
      }
      await stranger.publish(batchOf("x/a", ["theirs", withKey("svc-a")]));
      const delivered = await receiver.waitForCount(bad.length + 2);
      const contents = delivered.map((event) => Buffer.from(event.content, "base64").toString());
      expect(contents).toEqual([...bad.map(() => "ours"), "theirs", "a"]);
      before = await listSkipped(client);
      expect(before).toMatchObject(bad.map(() => ({ reason: "beyond-limits" })));
      expect(peakMebibytes(broker.pid)).toBeLessThan(memoryMebibytesMax);
      expect((await broker.stop()).code).toBe(0);
    }
    removeStore(folder.path);
    await using rebuilt = await startBroker({ dataDir: folder.path, env });
    await using client = new Client(rebuilt.url);
    await until("the broker is ready", () => client.isReady());
    expect(await listSkipped(client)).toEqual(before);
    for (const { eventId } of receiver.accepted()) expect((await client.getEvent(eventId)).eventId).toBe(eventId);
  });
});
