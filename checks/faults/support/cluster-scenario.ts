import { expect } from "vitest";
import { slow } from "../../harness/behaviours.ts";
import type { Client } from "../../harness/client.ts";
import { Cluster, type ClusterOptions } from "../../harness/cluster.ts";
import type { ClusterNode } from "../../harness/cluster-node.ts";
import { accept, type Receiver, startReceiver } from "../../harness/receiver.ts";
import { canFindSocketOwner, type Ends, findSocketOwner } from "../../harness/socket-owner.ts";
import { until } from "../../harness/until.ts";
import { ClusterLoad } from "./cluster-load.ts";
import { recordOwners, listForeignAttempts, listJoins, listWrongWrites } from "./ownership.ts";
import {
  expectFound,
  expectGaplessSequences,
  expectMatchesLoad,
  replayAll,
  untilNotified,
  untilSteady,
} from "./replay.ts";
import { expectDeliveredInOrder, type Fault, type History, type WatchedSubscription } from "./watched-subscription.ts";

const topics = ["c/a", "c/b", "c/d"];
const blockTimeS = 0.5;
/** Shorter than the default for a short scenario, but long enough for a busy machine. */
const takeOverAfterMs = 4000;
const quick = {
  STELE_CALLBACK_BACKOFF_MIN_MS: "20",
  STELE_CALLBACK_BACKOFF_MAX_MS: "200",
  STELE_TAKE_OVER_AFTER_MS: String(takeOverAfterMs),
};
const quickGroup = { pollMs: 100, publishTimeoutMs: 20_000 };
const recoverMs = 60_000;
/** Added to the recorded end of a fault: the test records a callback a moment after the broker sent it. */
const slackMs = 500;
const problemsShown = 10;
const logLinesShown = 20;

/** Filters of the subscriptions, and the topics that each matches. Each filter has three subscriptions, so that every node gets several. */
const filters: readonly (readonly [string, (topic: string) => boolean])[] = [
  ...topics.map((own) => [own, (topic: string) => topic === own] as const),
  ["c/#", () => true],
];

/** Nodes under load. Subscriptions record every callback and the node that made it. */
export class ClusterScenario implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly load: ClusterLoad;
  readonly subscriptions: WatchedSubscription[] = [];
  readonly #faults: Fault[] = [];
  readonly #receivers: Receiver[] = [];
  #checkedFailures = 0;
  #repeated = 0;
  #isVerified = false;

  private constructor(cluster: Cluster) {
    const { nodes, random } = cluster;
    this.cluster = cluster;
    this.load = new ClusterLoad({ topics, publishersPerTopic: 2, urls: nodes.map(({ url }) => url), random });
  }

  /** Starts everything and waits until every subscription receives events. */
  static async start({ env = {}, group = {}, ...options }: ClusterOptions = {}): Promise<ClusterScenario> {
    const cluster = await Cluster.start({
      blockTimeS,
      isChainKept: true,
      ...options,
      env: { ...quick, ...env },
      group: { ...quickGroup, ...group },
    });
    const scenario = new ClusterScenario(cluster);
    try {
      await recordOwners(cluster.database);
      await scenario.#begin();
      return scenario;
    } catch (error) {
      await scenario[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Whether `verify` has passed since the start or the last `resume`. */
  get isVerified(): boolean {
    return this.#isVerified;
  }

  /** After `verify`: restarts stopped nodes and resumes publishing. */
  async resume(): Promise<void> {
    this.#isVerified = false;
    await this.cluster.resume();
    await this.untilEven();
    this.load.start();
    await this.untilNotifiedOfMore();
    this.ignoreFailures();
  }

  get nodes(): readonly ClusterNode[] {
    return this.cluster.nodes;
  }

  /** A client of a working node. */
  get client(): Client {
    const [first] = this.#working;
    if (first === undefined) throw new Error("no node works");
    return first.client;
  }

  /** The node that indexes the chain; undefined if no node does. */
  async findFollower(): Promise<ClusterNode | undefined> {
    const [row] = await this.cluster.database.query(
      "select address from group_leases join nodes on nodes.node_id = group_leases.node_id",
    );
    return this.nodes.find(({ address }) => address === row?.["address"]);
  }

  /** The subscriptions that a node owns, as a working node lists them. */
  async listSubscriptionsOf({ address }: ClusterNode): Promise<readonly WatchedSubscription[]> {
    const ids = Object.keys((await this.client.listSubscriptions())[address] ?? {});
    return this.subscriptions.filter(({ id }) => ids.includes(id));
  }

  /** The node's current id in the database; undefined if the node is not a member. */
  async findNodeId({ address }: ClusterNode): Promise<string | undefined> {
    const [row] = await this.cluster.database.query("select node_id from nodes where address = $1", [address]);
    return row?.["node_id"] as string | undefined; // The column is a text.
  }

  /** From now on, receivers delay each answer by `delayMs`; without an argument, not at all. */
  slowDown(delayMs?: number): void {
    for (const { receiver } of this.subscriptions) {
      receiver.setBehaviour(delayMs === undefined ? accept : slow(delayMs));
    }
  }

  /** Runs a fault and records its time. During the fault, and shortly after, nodes may fail to write acknowledgements. */
  async runFault<T>(how: () => Promise<T>): Promise<T> {
    const from = performance.now();
    const result = await how();
    this.#faults.push({ from, to: performance.now() + slackMs });
    return result;
  }

  /** Waits until every subscription has accepted an event sent after this call. */
  async untilNotifiedOfMore(): Promise<void> {
    const since = performance.now();
    const hasNewEvent = ({ receiver }: WatchedSubscription): boolean =>
      receiver.attempts.some(({ isAccepted, event }) => isAccepted && this.#sentAt(event.content) > since);
    await until("every subscription receives a new event", () => this.subscriptions.every(hasNewEvent), {
      timeoutMs: recoverMs,
    }).catch((error: unknown) => this.#fail(error));
  }

  /** Waits until the numbers of the working nodes' subscriptions differ by at most one. */
  async untilEven(): Promise<void> {
    await until(
      "the subscriptions are spread evenly over the working nodes",
      async () => {
        const listing = await this.client.listSubscriptions();
        const counts = this.#working.map(({ address }) => Object.keys(listing[address] ?? {}).length);
        const isComplete = counts.reduce((sum, count) => sum + count, 0) === this.subscriptions.length;
        return isComplete && Math.max(...counts) - Math.min(...counts) <= 1;
      },
      { timeoutMs: recoverMs },
    ).catch((error: unknown) => this.#fail(error));
  }

  /** Checks that no second try of a publish has failed since the last `ignoreFailures`. */
  expectNoFailure(): void {
    expect(this.load.failures.slice(this.#checkedFailures)).toEqual([]);
  }

  /** Ignores the failures so far: a fault caused them. */
  ignoreFailures(): void {
    this.#checkedFailures = this.load.failures.length;
  }

  /**
   * Checks that
   * - every acknowledged event exists;
   * - each subscription received all events in order, with repeats only during faults;
   * - no cursor went back, and no node wrote the cursor of a subscription that it did not own;
   * - all nodes together made at most `strayMax` attempts for subscriptions that they did not own.
   *
   * Returns the number of repeats since the last call.
   */
  async verify({ strayMax = 0 }: { readonly strayMax?: number } = {}): Promise<number> {
    await this.untilNotifiedOfMore();
    await this.load.stop();
    const { client } = this;
    await untilSteady(client);
    await untilNotified(
      client,
      this.subscriptions.map(({ id }) => id),
    ).catch((error: unknown) => this.#fail(error));
    const events = await replayAll(client);
    await expectGaplessSequences(client, events);
    expectMatchesLoad(events, this.load);
    await expectFound(client, this.load.acknowledged.values());
    const history = { events, load: this.load, faults: this.#faults };
    const repeats = await this.#countRepeats(history);
    const attempts = this.subscriptions.flatMap(({ receiver }) => receiver.attempts);
    const writes = await listWrongWrites(this.cluster.database, (address, port) => this.#hadPort(address, port));
    expect(writes.slice(0, problemsShown)).toEqual([]);
    const strays = canFindSocketOwner ? await listForeignAttempts(this.cluster.database, attempts) : [];
    expect(strays.slice(strayMax, strayMax + problemsShown)).toEqual([]);
    const { acknowledged, sent, retries, failures } = this.load;
    const repeated = repeats.reduce((sum, count) => sum + count, 0) - this.#repeated;
    this.#repeated += repeated;
    process.stdout.write(
      `${expect.getState().currentTestName ?? ""}: ${acknowledged.size} of ${sent.size} acknowledged, ${retries} tried twice, ` +
        `${failures.length} of these failed; ${attempts.length} callbacks, ${repeated} of them repeats` +
        `${canFindSocketOwner ? "" : "; the nodes of the callbacks are not checked: this system does not show the owner of a socket"}\n`,
    );
    this.#isVerified = true;
    return repeated;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.stop();
    await this.cluster[Symbol.asyncDispose]();
    for (const receiver of this.#receivers) await receiver[Symbol.asyncDispose]();
  }

  get #working(): readonly ClusterNode[] {
    return this.cluster.running.filter(({ isFrozen }) => !isFrozen);
  }

  async #begin(): Promise<void> {
    await Promise.all(topics.map((topic) => this.cluster.client.open(topic)));
    for (const [filter, matches] of filters) {
      await this.#subscribe({ filter, matches });
      await this.#subscribe({ filter, matches, isRpc: true });
      await this.#subscribe({ filter, matches, delayMs: 5 });
    }
    await this.untilEven();
    this.load.start();
    await this.untilNotifiedOfMore();
  }

  async #subscribe(
    watch: Pick<WatchedSubscription, "filter" | "matches"> & { readonly isRpc?: boolean; readonly delayMs?: number },
  ): Promise<void> {
    const { filter, matches, isRpc = false, delayMs } = watch;
    const behaviour = delayMs === undefined ? accept : slow(delayMs);
    const receiver = await startReceiver({ behaviour, senderOf: (ends) => this.#callerOf(ends) });
    this.#receivers.push(receiver);
    const { client } = this.cluster;
    const params = { topic: filter, url: receiver.url };
    const id = await (isRpc ? client.subscribeByRpc(params) : client.subscribe(params));
    this.subscriptions.push({ id, filter, matches, receiver, subscribedAt: performance.now() });
  }

  #callerOf(ends: Ends): string | undefined {
    const { running } = this.cluster;
    const pid = findSocketOwner(
      ends,
      running.map(({ broker }) => broker.pid),
    );
    return running.find(({ broker }) => broker.pid === pid)?.address;
  }

  #hadPort(address: string, port: number): boolean {
    return this.nodes.some((node) => node.address === address && node.proxies.database.hadPort(port));
  }

  #sentAt(content: string): number {
    return this.load.sent.get(Buffer.from(content, "base64").toString())?.sentAt ?? 0;
  }

  async #countRepeats(history: History): Promise<readonly number[]> {
    try {
      return this.subscriptions.map((subscription) => expectDeliveredInOrder(subscription, history));
    } catch (error) {
      return this.#fail(error);
    }
  }

  /** Throws the error with the times at which nodes joined, and the last log lines of all nodes, running or not. */
  async #fail(failure: unknown): Promise<never> {
    const joins = await listJoins(this.cluster.database).catch((reason: unknown) => [String(reason)]);
    const logs = this.nodes.map(
      ({ address, stdout }) => `${address}:\n${stdout.split("\n").slice(-logLinesShown).join("\n")}`,
    );
    const failures = this.load.failures.slice(-5).join(" ");
    throw new Error(`${String(failure)}\njoins: ${joins.join(", ")}\nlast failures: ${failures}\n${logs.join("\n")}`);
  }
}
