import { Stele } from "@stele/client";
import { describe, expect, it } from "vitest";
import { Cluster } from "../../harness/cluster.ts";
import type { ClusterNode } from "../../harness/cluster-node.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import type { Random } from "../../harness/random.ts";
import { TcpProxy } from "../../harness/tcp-proxy.ts";
import { until } from "../../harness/until.ts";

/** Minutes of further random disturbances, after one of each kind. */
const minutes = Number(process.env["CHECKS_SUBSCRIPTION_MINUTES"] ?? 0);
const topics = ["load/a", "load/b"];
/** Events that one call publishes. */
const publishedAtOnce = 20;
/** Maximum number of events that the test waits for between two disturbances. */
const calmEventsMax = 60;
const timeoutMs = minutes * 60_000 + 240_000;

/** Checks that each topic's events arrive as 1, 2, 3 … and no content arrives twice. */
class Arrivals {
  total = 0;
  readonly last = new Map<string, number>();
  readonly contents = new Set<string>();
  readonly problems: string[] = [];

  take(topic: string, eventId: string, content: string): void {
    const sequence = Number(eventId.split("-")[1]);
    const expected = (this.last.get(topic) ?? 0) + 1;
    if (sequence !== expected) this.problems.push(`${topic}: ${sequence} instead of ${expected}`);
    if (this.contents.has(content)) this.problems.push(`${topic}: ${content} twice`);
    this.contents.add(content);
    this.last.set(topic, sequence);
    this.total += 1;
  }
}

/** Publishes until the signal aborts, with `once` so that retries of the client make no duplicates. Returns the number of acknowledged events. */
async function publishUntil(
  signal: AbortSignal,
  { stele, topic, connections }: { readonly stele: Stele; readonly topic: string; readonly connections: Connections },
): Promise<number> {
  let published = 0;
  for (let turn = 0; !signal.aborted; turn += 1) {
    const events = Array.from({ length: publishedAtOnce }, (_, index) => ({
      topic,
      content: `${topic} ${turn}/${index}`,
      once: true,
    }));
    const outcomes = await stele.publishMany(events);
    const failed = outcomes.find((outcome) => outcome.status === "failed");
    if (failed !== undefined)
      connections.failed = `${new Date().toISOString()} ${failed.error.code} ${failed.error.message}`;
    published += outcomes.filter(({ status }) => status === "published").length;
  }
  return published;
}

interface Connections {
  /** Number of connections so far. */
  count: number;
  /** Number of resync notices. */
  resyncs: number;
  /** Why the last connection ended, and when. */
  lost: string;
  /** Why the last publish failed, and when. */
  failed: string;
}

/** Waits for `task`. Rejects as soon as one of `parts`, which should outlast the task, ends or fails. */
async function whileLasts(parts: readonly Promise<unknown>[], task: Promise<unknown>): Promise<void> {
  const endings = parts.map(async (part) => {
    const end = await part;
    throw new Error(`a reader, a publisher or a node ended: ${JSON.stringify(end)}`);
  });
  await Promise.race([task, ...endings]);
}

/** Describes the client and the nodes after events stopped arriving. */
async function describeStall(cluster: Cluster, arrivals: Arrivals, connections: Connections): Promise<string> {
  const lines = [
    `no events since ${arrivals.total}: ${JSON.stringify([...arrivals.last])}`,
    JSON.stringify(connections),
  ];
  for (const node of cluster.running) {
    const stele = new Stele({ url: node.url, retries: 0, timeoutMs: 5_000 });
    const readiness = await stele.readiness().then(JSON.stringify, String);
    const states = await Promise.all(topics.map((topic) => stele.state(topic).then(JSON.stringify, String)));
    lines.push(`${node.url}: ${readiness} ${states.join(" ")}`, node.broker.stdout().slice(-2_000));
  }
  return lines.join("\n");
}

/** Disturbs the subscription, and counts how often. */
class Disturber {
  cuts = 0;
  restarts = 0;
  kills = 0;
  readonly #cluster: Cluster;
  readonly #proxy: TcpProxy;
  readonly #random: Random;

  constructor(cluster: Cluster, proxy: TcpProxy) {
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#random = cluster.random;
  }

  /** Makes one random disturbance, mostly a cut. */
  async any(): Promise<void> {
    const choice = this.#random.below(20);
    const node = this.#cluster.nodes[this.#random.below(this.#cluster.nodes.length)];
    if (choice === 0) await this.restart(node);
    else if (choice === 1) await this.kill(node);
    else await this.cut();
  }

  async cut(): Promise<void> {
    this.cuts += 1;
    this.#proxy.cut();
  }

  async restart(node: ClusterNode | undefined): Promise<void> {
    this.restarts += 1;
    await node?.stop();
    await node?.start();
  }

  /** Kills a node and restarts it. Meanwhile, the other nodes take over its work. */
  async kill(node: ClusterNode | undefined): Promise<void> {
    this.kills += 1;
    await node?.kill();
    await node?.start();
  }
}

describe.runIf(hasPostgres)(titleOf("a subscription of the client over three nodes"), () => {
  it(
    "a subscription of the client misses and repeats no event while connections are cut, and nodes restart and are killed",
    async () => {
      await using cluster = await Cluster.start({ group: { pollMs: 50 }, blockTimeS: 1 });
      const { random } = cluster;
      const anyPort = (): number =>
        Number(new URL(cluster.running[random.below(cluster.running.length)]?.url ?? "").port);
      await using balancer = await TcpProxy.start(anyPort);
      const stele = new Stele({ url: `http://127.0.0.1:${balancer.port}`, retries: 10 });
      for (const topic of topics) await stele.open(topic);
      const arrivals = new Arrivals();
      const connections: Connections = { count: 0, resyncs: 0, lost: "never", failed: "none" };
      const tail = stele.subscribe("load/#", {
        reconnectMsMax: 50,
        onConnect: () => (connections.count += 1),
        onResync: () => (connections.resyncs += 1),
        onReconnect: ({ reason }) => (connections.lost = `${new Date().toISOString()} ${reason}`),
      });
      await tail.opened();
      const reading = (async () => {
        for await (const event of tail) arrivals.take(event.topic, event.eventId, event.text());
      })();
      const stopping = new AbortController();
      const publishing = topics.map((topic) => publishUntil(stopping.signal, { stele, topic, connections }));
      const disturber = new Disturber(cluster, balancer);
      const calm = async (): Promise<void> => {
        const goal = arrivals.total + 1 + random.below(calmEventsMax);
        const nodes = cluster.running.map(({ broker }) => broker.exited);
        try {
          const coming = until("more events arrive", () => arrivals.total >= goal, { timeoutMs: 120_000 });
          await whileLasts([reading, ...publishing, ...nodes], coming);
        } catch (error) {
          throw new Error(await describeStall(cluster, arrivals, connections), { cause: error });
        }
      };
      const begunAt = performance.now();
      for (const disturb of [disturber.cut, disturber.restart, disturber.kill]) {
        const before = connections.count;
        // One of these nodes serves the connection, so disturb one after another until the connection ends.
        for (const node of cluster.nodes) {
          if (connections.count > before) break;
          await calm();
          await disturb.call(disturber, node);
        }
        await until("the client reconnects", () => connections.count > before, { timeoutMs: 60_000 });
      }
      while (performance.now() - begunAt < minutes * 60_000 && arrivals.problems.length === 0) {
        await calm();
        await disturber.any();
      }
      stopping.abort();
      const published = (await Promise.all(publishing)).reduce((sum, count) => sum + count, 0);
      const states = await Promise.all(topics.map((topic) => stele.state(topic)));
      const all = states.reduce((sum, { sequenceNumber }) => sum + sequenceNumber, 0);
      await until("the last events arrive", () => arrivals.total >= all, { timeoutMs: 60_000 });
      tail.close();
      await reading;
      expect(arrivals.problems).toEqual([]);
      expect(arrivals.total).toBe(all);
      expect(all).toBeGreaterThanOrEqual(published);
      expect(connections.resyncs).toBe(0);
      const { cuts, restarts, kills } = disturber;
      const tookMin = ((performance.now() - begunAt) / 60_000).toFixed(1);
      process.stdout.write(
        `a subscription over ${tookMin} min: ${all} events, ${connections.count} connections, ${cuts} cuts, ${restarts} restarts, ${kills} kills\n`,
      );
    },
    timeoutMs,
  );
});
