import { describe, expect, it } from "vitest";
import { type Anvil, devKey, startAnvil } from "../../harness/anvil.ts";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { CallFailed, Client, type EventBody } from "../../harness/client.ts";
import { groupsEnv } from "../../harness/group.ts";
import { type Receiver, startReceiver } from "../../harness/receiver.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { ChainScenario } from "../support/chain-scenario.ts";
import { PublishLoad } from "../support/publish-load.ts";
import { expectGaplessSequences, replayAll, untilSteady } from "../support/replay.ts";

const finality = 3;
const topics = ["r/a", "r/b"];
const blockTimeS = 0.5;
const recoverMs = 60_000;
/** The test with twelve reorganisations takes 40 s. */
const timeoutMs = 300_000;
const keyOf = (event: EventBody): string => `${event.eventId} ${event.content}`;
const textOf = ({ content }: EventBody): string => Buffer.from(content, "base64").toString();

/** Removes the newest `depth` blocks of a chain that has more. */
type TakeBack = (anvil: Anvil, depth: number) => Promise<void>;

const reorg: TakeBack = async (anvil, depth) => {
  await anvil.request("anvil_reorg", [depth, []]);
};
const rollback: TakeBack = async (anvil, depth) => {
  await anvil.request("anvil_rollback", [depth]);
};
const revert: TakeBack = async (anvil, depth) => {
  const snapshot = await anvil.request("evm_snapshot");
  const from = await headOf(anvil);
  await until(`the chain has ${depth} more blocks`, async () => (await headOf(anvil)) >= from + depth);
  expect(await anvil.request("evm_revert", [snapshot])).toBe(true);
};

/** Waits until the newest block has a transaction, so that a reorganisation removes one. */
async function untilPublished(anvil: Anvil): Promise<void> {
  await until("the newest block has a transaction", async () => {
    const block = await anvil.request("eth_getBlockByNumber", ["latest", false]);
    return (block as { transactions: readonly string[] }).transactions.length > 0; // The shape of a block.
  });
}

async function headOf(anvil: Anvil): Promise<number> {
  return Number(await anvil.request("eth_blockNumber"));
}

async function metricOf(client: Client, name: string): Promise<number> {
  const { text } = await client.http.send({ method: "GET", path: "/metrics" });
  return Number(new RegExp(`^${name}{group="1"} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}

async function warningOf(client: Client): Promise<string | undefined> {
  const answer = await client.http.send({ method: "GET", path: "/health/ready" });
  return (answer.json() as { groups: readonly { warning?: string }[] }).groups[0]?.warning; // Documented in docs/rest.md.
}

describe("a reorganisation inside the finality setting", () => {
  it.concurrent(
    "reorganisations inside the finality setting by anvil_reorg, anvil_rollback and evm_revert have no effect: no event is repeated or lost",
    async () => {
      await using scenario = await ChainScenario.start({ group: { finality, publishTimeoutMs: 20_000 } });
      for (const takeBack of [reorg, rollback, revert]) {
        for (const depth of [1, 2, 1, 2]) {
          await untilPublished(scenario.anvil);
          await takeBack(scenario.anvil, depth);
          await scenario.untilAcknowledged(8);
        }
        expect(await metricOf(scenario.client, "stele_reorganisations_total"), takeBack.name).toBe(0);
      }
      expect(await warningOf(scenario.client)).toBeUndefined();
      await scenario.expectRecovered();
    },
    timeoutMs,
  );
});

/** A broker with finality `latest`, so that every reorganisation removes final blocks. */
class LatestScenario implements AsyncDisposable {
  readonly load = new PublishLoad(topics, { publishersPerTopic: 4 });
  readonly #disposables: readonly AsyncDisposable[];
  readonly #folder;
  readonly anvil: Anvil;
  readonly receiver: Receiver;
  readonly broker: BrokerProcess;
  readonly client: Client;

  private constructor(parts: {
    readonly anvil: Anvil;
    readonly receiver: Receiver;
    readonly broker: BrokerProcess;
    readonly folder: Disposable;
  }) {
    this.anvil = parts.anvil;
    this.receiver = parts.receiver;
    this.broker = parts.broker;
    this.client = new Client(parts.broker.url);
    this.#folder = parts.folder;
    this.#disposables = [this.client, this.broker, this.anvil, this.receiver];
  }

  /** Starts a chain and a broker, and opens the topics in blocks that no test removes. */
  static async start(options: { readonly blockTimeS?: number } = {}): Promise<LatestScenario> {
    const anvil = await startAnvil(options);
    const folder = createTempFolder();
    const group = { id: "1", endpoints: [anvil.url], privateKey: devKey(0), finality: "latest", pollMs: 100 };
    const env = { ...groupsEnv([group]), STELE_LOG_LEVEL: "warn" };
    const broker = await startBroker({ dataDir: folder.path, env }).catch(async (error: unknown) => {
      await anvil.stop();
      throw error;
    });
    const scenario = new LatestScenario({ anvil, folder, broker, receiver: await startReceiver() });
    try {
      await scenario.#prepare();
      return scenario;
    } catch (error) {
      await scenario[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #prepare(): Promise<void> {
    await until("the broker is ready", () => this.client.isReady());
    for (const topic of topics) await this.client.open(topic);
    await this.anvil.request("anvil_mine", ["0x14"]);
    await this.client.subscribe({ topic: "#", url: this.receiver.url });
  }

  async untilAcknowledged(count: number): Promise<void> {
    const { size } = this.load.acknowledged;
    await until(`${count} more events are acknowledged`, () => this.load.acknowledged.size >= size + count, {
      timeoutMs: recoverMs,
    });
  }

  /** Waits until the broker has counted this many reorganisations, and checks that it has not counted more. */
  async untilReorganised(count: number): Promise<void> {
    const read = () => metricOf(this.client, "stele_reorganisations_total");
    await until(`the broker counts ${count} reorganisations`, async () => (await read()) >= count, {
      timeoutMs: recoverMs,
    });
    expect(await read()).toBe(count);
  }

  /** Waits until every event has arrived under its current id. Checks that the last deliveries of the events are in the order of the events. */
  async expectDelivered(events: readonly EventBody[]): Promise<void> {
    const last = () => new Map(this.receiver.attempts.map(({ event }, index) => [keyOf(event), index]));
    await until("all events are delivered", () => {
      const delivered = last();
      return events.every((event) => delivered.has(keyOf(event)));
    });
    const delivered = last();
    const places = events.map((event) => delivered.get(keyOf(event)) ?? Number.NaN);
    expect(places).toEqual(places.toSorted((left, right) => left - right));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.stop();
    for (const one of this.#disposables) await one[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}

describe("a reorganisation deeper than the finality setting", () => {
  it.concurrent("a deeper reorganisation rolls the index back and appears in health, metrics and log; acknowledged events return under new ids", async () => {
    await using scenario = await LatestScenario.start();
    const { client, receiver, anvil } = scenario;
    const sent: string[] = [];
    for (let index = 1; index <= 5; index += 1) sent.push((await client.publish("r/a", `event ${index}`)).eventId);
    await receiver.waitForCount(5);
    await reorg(anvil, 3);
    await scenario.untilReorganised(1);
    expect(await metricOf(client, "stele_events_vanished_total")).toBe(3);
    await until("all events are back", async () => (await client.state("r/a")).sequenceNumber === 5, {
      timeoutMs: recoverMs,
    });

    const events = await replayAll(client);
    expect(events.map(textOf)).toEqual(["event 1", "event 2", "event 3", "event 4", "event 5"]);
    await expectGaplessSequences(client, events);
    const ids = events.map(({ eventId }) => eventId);
    expect(ids.slice(0, 2)).toEqual(sent.slice(0, 2));
    await scenario.expectDelivered(events);
    for (const gone of sent.filter((id) => !ids.includes(id))) {
      const failure: unknown = await client.getEvent(gone).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(CallFailed);
      expect(failure).toMatchObject({
        code: 100_303,
        message: expect.stringContaining("taken back by a reorganisation"),
      });
    }
    expect(ids.slice(2).filter((id) => sent.includes(id))).toEqual([]);
    expect(await warningOf(client)).toMatch(
      /^in the last hour the chain took back the final blocks after block \d+: 3 blocks with 3 events$/,
    );
    const line = scenario.broker
      .stdout()
      .split("\n")
      .find((text) => text.includes("chain reorganised"));
    expect(JSON.parse(line ?? "{}")).toMatchObject({ level: "warn", groupId: "1", blocks: 3, events: 3, topics: 0 });
    expect((await client.publish("r/a", "event 6")).status).toBe("SUCCESS");
    expect(await client.isReady()).toBe(true);
  });

  it.concurrent.each([
    ["anvil_reorg", reorg],
    ["anvil_rollback", rollback],
    ["evm_revert", revert],
  ] as const)(
    "a deeper reorganisation by %s under load: every acknowledged event exists once, and arrives under its current id",
    async (_, takeBack) => {
      await using scenario = await LatestScenario.start({ blockTimeS });
      const { client, load } = scenario;
      load.start(scenario.broker.url);
      await scenario.untilAcknowledged(30);
      for (const depth of [2, 6]) {
        await untilPublished(scenario.anvil);
        await takeBack(scenario.anvil, depth);
        await scenario.untilAcknowledged(30);
      }
      await load.stop();
      await untilSteady(client);
      const events = await replayAll(client);
      await expectGaplessSequences(client, events);
      const texts = events.map(textOf);
      expect(texts.length).toBe(new Set(texts).size);
      const there = new Set(texts);
      expect([...load.acknowledged.values()].filter(({ content }) => !there.has(content))).toEqual([]);
      expect(texts.filter((text) => !load.sent.has(text) || load.refused.has(text))).toEqual([]);
      await scenario.expectDelivered(events);
      await until(
        "both reorganisations are counted",
        async () => (await metricOf(client, "stele_reorganisations_total")) >= 2,
      );
      expect(await warningOf(client)).toMatch(/^in the last hour the chain took back/);
      expect(await client.isReady()).toBe(true);
    },
  );
});
