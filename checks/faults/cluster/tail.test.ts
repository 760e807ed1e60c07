import { describe, expect, it } from "vitest";
import { Cluster } from "../../harness/cluster.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { TailClient } from "../../harness/tail-client.ts";
import { until } from "../../harness/until.ts";
import { publishUntil, runTail, sequencesOf } from "../support/tail-load.ts";

const reconnects = 50;
const topics = ["load/a", "load/b"];
const timeoutMs = 240_000;

describe.runIf(hasPostgres)(titleOf("a tail over three nodes"), () => {
  it(
    `a tail misses and repeats no event in ${reconnects} connections to random nodes, one of which is killed`,
    async () => {
      await using cluster = await Cluster.start({ group: { pollMs: 50 } });
      const { random } = cluster;
      for (const topic of topics) await cluster.client.open(topic);
      const stopping = new AbortController();
      const tail = new TailClient("topic=load/%23&after=OFFSET_FIRST");
      const urlOfAny = (): string => cluster.running[random.below(cluster.running.length)]?.url ?? "";
      const running = [
        runTail(tail, { url: urlOfAny, random, signal: stopping.signal }),
        ...topics.map((topic) => publishUntil(stopping.signal, { client: () => cluster.client, topic })),
      ];
      await until("the tail has reconnected often", () => tail.opened > reconnects / 2, { timeoutMs: 120_000 });
      await cluster.nodes[1]?.kill();
      await until("the tail has reconnected as often again", () => tail.opened > reconnects, { timeoutMs: 120_000 });
      stopping.abort();
      await Promise.all(running);
      const { client } = cluster.nodes[0] ?? {};
      if (client === undefined) throw new Error("the first node is gone");
      const counts = await Promise.all(topics.map(async (topic) => (await client.state(topic)).sequenceNumber));
      const total = counts.reduce((sum, count) => sum + count, 0);
      if (tail.events.length < total) await tail.read(urlOfAny(), () => tail.events.length < total);
      for (const [index, topic] of topics.entries()) {
        const all = Array.from({ length: counts[index] ?? 0 }, (_, place) => place + 1);
        expect(sequencesOf(tail.events, topic), topic).toEqual(all);
      }
      expect(tail.notices.filter((name) => name !== "end")).toEqual([]);
      process.stdout.write(`a tail over three nodes: ${tail.events.length} events, ${tail.opened} connections\n`);
    },
    timeoutMs,
  );
});
