import { type Hex, toHex } from "viem";
import { describe, expect, it } from "vitest";
import { type Anvil, devKey, startAnvil } from "../../harness/anvil.ts";
import { runBroker, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { groupsEnv } from "../../harness/group.ts";
import { type Receiver, startReceiver } from "../../harness/receiver.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { PublishLoad } from "../support/publish-load.ts";
import { removeStore } from "../support/remove-store.ts";
import { expectFound, placeOf } from "../support/replay.ts";
import {
  addressOf,
  batchOf,
  listSkipped,
  type RawBatch,
  registry,
  type Skipped,
  Stranger,
} from "../support/stranger.ts";

const topics = ["x/a", "x/b"];
const blockTimeS = 0.5;
const refusedName = "x/#/not ours";
const hugeCount = 2 ** 32 - 1;
const hugeBytes = 100_000;
const foreign = "a stranger's, and good";

/** Bad batches that the contract accepts, each with the reason for which the broker skips it. */
const badBatches: readonly (readonly [string, RawBatch])[] = [
  ["undecodable-batch", batchOf("x/a", ["1", "2"], { events: "0xc0ffeec0ffee" })],
  ["undecodable-batch", batchOf("x/a", ["1", "2", "3"], { events: `0x${"00".repeat(9)}` })],
  ["wrong-count", batchOf("x/b", ["first", "second"], { count: 3 })],
  ["wrong-root", batchOf("x/a", ["1", "2"], { eventsRoot: toHex(new Uint8Array(32)) })],
  ["undecodable-batch", batchOf("x/b", ["1"], { events: toHex(new Uint8Array(hugeBytes).fill(0xb8)) })],
  ["topic-not-indexed", batchOf(refusedName, ["1"])],
];

/** Batches that the contract rejects: they change no sequence number, and the broker records no skipped entry. */
const refusedBatches: readonly RawBatch[] = [
  batchOf("x/b", ["1"], { count: hugeCount }),
  batchOf("x/a", ["1", "2", "3"], { events: "0x" }),
];

function countOf(values: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

interface Report {
  readonly status: string;
  readonly onChain: number;
  readonly malformed: readonly { readonly firstSequence: number; readonly count: number; readonly fault: string }[];
}

/** Checks with `stele verify` that each sequence number of the topic belongs to a delivered event or to a malformed batch. */
async function expectVerified(
  topic: string,
  receiver: Receiver,
  parts: { brokerUrl: string; anvil: Anvil },
): Promise<void> {
  const words = ["verify", "--topic", topic, "--from", "1", "--json", "--broker", parts.brokerUrl];
  const { code, stdout, stderr } = await runBroker({
    args: [...words, "--rpc", parts.anvil.url, "--registry", registry],
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const report = JSON.parse(stdout) as Report; // Documented in docs/proofs.md.
  expect(report.status).toBe("verified");
  const bad = badBatches.filter(([, batch]) => batch.topic === addressOf(topic));
  expect(report.malformed.map(({ count }) => count)).toEqual(bad.map(([, { count }]) => count));
  const own = receiver.accepted().filter((event) => event.topic === topic);
  const spans = own.map(({ eventId }) => ({ first: placeOf(eventId).sequence, count: 1 }));
  for (const { firstSequence, count } of report.malformed) spans.push({ first: firstSequence, count });
  let next = 1;
  for (const { first, count } of spans.toSorted((left, right) => left.first - right.first)) {
    expect(`${topic}: ${first}`).toBe(`${topic}: ${next}`);
    next = first + count;
  }
  expect(next).toBe(report.onChain + 1);
}

describe("a stranger on the registry", () => {
  it("a stranger blocks nobody: the broker records, counts and skips the stranger's bad batches, and delivers all other events in order", async () => {
    await using anvil = await startAnvil({ blockTimeS });
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    const env = groupsEnv([{ id: "1", endpoints: [anvil.url], privateKey: devKey(0), pollMs: 100 }]);
    const options = { dataDir: folder.path, env: { ...env, STELE_LOG_LEVEL: "warn" } };
    const load = new PublishLoad(topics, { publishersPerTopic: 4 });
    const stranger = new Stranger(anvil.url);
    const hashes: Hex[] = [];
    let before: readonly Skipped[];
    {
      await using broker = await startBroker(options);
      await using client = new Client(broker.url);
      await until("the broker is ready", () => client.isReady());
      for (const topic of topics) await client.open(topic);
      await client.subscribe({ topic: "#", url: receiver.url });
      load.start(broker.url);
      await stranger.open(refusedName);
      for (const [, batch] of badBatches) {
        hashes.push(await stranger.publish(batch));
        const { size } = load.acknowledged;
        await until("publishing continues", () => load.acknowledged.size > size + 8);
      }
      await stranger.publish(...refusedBatches);
      await stranger.publish(batchOf("x/a", [foreign]));
      const { size } = load.acknowledged;
      await until("publishing continues", () => load.acknowledged.size > size + 8);
      await load.stop();
      expect(load.refusals).toEqual([]);

      await receiver.waitForCount(load.acknowledged.size + 1);
      const delivered = receiver.accepted();
      const own = delivered.filter(({ eventId }) => load.acknowledged.has(eventId));
      expect(own).toHaveLength(load.acknowledged.size);
      const [other, ...more] = delivered.filter(({ eventId }) => !load.acknowledged.has(eventId));
      expect([Buffer.from(other?.content ?? "", "base64").toString(), more]).toEqual([foreign, []]);
      await expectFound(client, load.acknowledged.values());
      for (const topic of topics) {
        const sequences = delivered
          .filter((event) => event.topic === topic)
          .map(({ eventId }) => placeOf(eventId).sequence);
        expect(sequences).toEqual(sequences.toSorted((left, right) => left - right));
        expect((await client.state(topic)).sequenceNumber).toBe(sequences.at(-1));
        await expectVerified(topic, receiver, { brokerUrl: broker.url, anvil });
      }
      expect((await client.list()).topicInfoList.map(({ topicName }) => topicName)).toEqual(topics);

      before = await listSkipped(client);
      const expected = [["topic-name-refused"], ...badBatches].map(([reason = ""]) => reason);
      expect(before.map(({ reason }) => reason)).toEqual(expected.toReversed());
      expect(before.slice(0, -1).map(({ transactionHash }) => transactionHash)).toEqual(hashes.toReversed());
      expect(before.slice(0, -1).map((entry) => entry.topicAddress)).toEqual(
        badBatches.map(([, { topic }]) => topic).toReversed(),
      );
      const metrics = (await client.http.send({ method: "GET", path: "/metrics" })).text;
      for (const [reason, count] of Object.entries(countOf(expected))) {
        expect(metrics).toContain(`stele_chain_entries_skipped_total{group="1",reason="${reason}"} ${count}\n`);
        expect(broker.stdout()).toMatch(new RegExp(`"${reason}".*chain entries skipped`));
      }
      const last = [...load.acknowledged.keys()].at(-1) ?? "";
      const proven = await runBroker({
        args: ["verify", last, "--broker", broker.url, "--rpc", anvil.url, "--registry", registry],
      });
      expect({ code: proven.code, out: proven.stdout }).toEqual({ code: 0, out: expect.stringContaining("verified") });
      expect((await broker.stop()).code).toBe(0);
    }
    removeStore(folder.path);
    await using rebuilt = await startBroker(options);
    await using client = new Client(rebuilt.url);
    await until("the broker is ready", () => client.isReady());
    expect(await listSkipped(client)).toEqual(before);
    await expectFound(client, load.acknowledged.values());
  });
});
