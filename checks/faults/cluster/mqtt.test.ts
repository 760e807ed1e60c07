import { connect, connectAsync, type IClientOptions, type MqttClient, Store } from "mqtt";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Cluster } from "../../harness/cluster.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";

const timeoutMs = 240_000;
const waitMs = 60_000;
const takenOver = 0x8e;
const env = { STELE_MQTT_PORT: "0" };

/** A client with a session. It keeps the packet identifiers of QoS 2 across connections, as MQTT requires. */
class Consumer {
  readonly #cluster: Cluster;
  readonly #clientId: string;
  readonly #incomingStore = new Store({ clean: false });
  readonly got: number[] = [];
  /** Reason codes with which the broker ended connections. */
  readonly endings: number[] = [];
  #client: MqttClient | undefined;

  constructor(cluster: Cluster, clientId: string) {
    this.#cluster = cluster;
    this.#clientId = clientId;
  }

  /** Returns whether the node had the session. */
  async connect(node: number): Promise<boolean> {
    let isPresent = false;
    const options: IClientOptions = {
      clientId: this.#clientId,
      protocolVersion: 5,
      clean: false,
      reconnectPeriod: 0,
      incomingStore: this.#incomingStore,
      properties: { sessionExpiryInterval: 600, receiveMaximum: 5 },
    };
    const former = this.#client;
    const client = connect(addressOf(this.#cluster, node), options);
    client.on("error", () => {});
    client.on("disconnect", ({ reasonCode = 0 }) => this.endings.push(reasonCode));
    client.on("connect", ({ sessionPresent }) => (isPresent = sessionPresent));
    client.on("message", (_, payload) => this.got.push(Number(String(payload))));
    this.#client = client;
    await until("the client is connected", () => client.connected, { timeoutMs: waitMs });
    former?.removeAllListeners("message");
    return isPresent;
  }

  async subscribe(filter: string, qos: 1 | 2): Promise<void> {
    await this.#client?.subscribeAsync(filter, { qos });
  }

  async untilGot(count: number): Promise<void> {
    await until(`${count} messages have arrived`, () => this.got.length >= count, { timeoutMs: waitMs });
  }

  async end(): Promise<void> {
    await this.#client?.endAsync(true);
  }
}

function addressOf(cluster: Cluster, node: number): string {
  const url = cluster.nodes[node]?.url ?? "";
  return `${url.replace(/^http/, "ws")}/mqtt`;
}

const ascending = (one: number, other: number): number => one - other;

const numbersTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe.runIf(hasPostgres)(titleOf("MQTT on several nodes"), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ env });
  });
  afterEach(() => cluster.resume());
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each([1, 2] as const)(
    "a client moves to another node amid QoS %i deliveries, and that node is killed: no event is lost, and the order holds",
    async (qos) => {
      const topic = `moves/${qos}`;
      const consumer = new Consumer(cluster, `consumer ${qos}`);
      await consumer.connect(0);
      await consumer.subscribe(topic, qos);
      const publisher = await connectAsync(addressOf(cluster, 2), { protocolVersion: 5, reconnectPeriod: 0 });
      const count = 45;
      const publishing = (async () => {
        for (const number of numbersTo(count)) await publisher.publishAsync(topic, String(number), { qos });
      })();
      await consumer.untilGot(10);
      expect(await consumer.connect(1)).toBe(true);
      await until("the former connection ended", () => consumer.endings.includes(takenOver), { timeoutMs: waitMs });
      await consumer.untilGot(25);
      await cluster.nodes[1]?.kill();
      expect(await consumer.connect(0)).toBe(true);
      await publishing;
      await until("the last number arrives", () => consumer.got.includes(count), { timeoutMs: waitMs });
      if (qos === 2) expect(consumer.got).toEqual(numbersTo(count));
      // A QoS 1 repeat may arrive after newer numbers. The first copies arrive in order.
      else expect([...new Set(consumer.got)]).toEqual(numbersTo(count));
      await consumer.end();
      await publisher.endAsync(true);
    },
    timeoutMs,
  );

  it(
    "a share with members at three nodes, one of which is killed: every event arrives, and only the last events of the killed node arrive twice",
    async () => {
      const consumers = [0, 1, 2].map((node) => new Consumer(cluster, `member ${node}`));
      for (const [node, consumer] of consumers.entries()) {
        await consumer.connect(node);
        await consumer.subscribe("$share/workers/shared", 1);
      }
      const publisher = await connectAsync(addressOf(cluster, 2), { protocolVersion: 5, reconnectPeriod: 0 });
      const all = (): number[] => consumers.flatMap(({ got }) => got);
      const publish = async (from: number, to: number): Promise<void> => {
        const numbers = numbersTo(to).slice(from);
        await Promise.all(numbers.map((number) => publisher.publishAsync("shared", String(number), { qos: 1 })));
      };
      await publish(0, 100);
      await until("the first hundred numbers arrive", () => new Set(all()).size === 100, { timeoutMs: waitMs });
      expect(all()).toHaveLength(100);
      const countHeld = async () => (await cluster.database.query("select count(*) from share_events"))[0]?.["count"];
      await until("the store has every acknowledgement", async () => (await countHeld()) === "0", {
        timeoutMs: waitMs,
      });
      const publishing = publish(100, 200);
      await cluster.nodes[1]?.kill();
      await publishing;
      await until("all numbers arrive", () => new Set(all()).size === 200, { timeoutMs: waitMs });
      // Repeats are the last events of the killed node's client: in flight, or acknowledged too late for the store.
      const repeated = all().filter((number, index) => all().indexOf(number) < index);
      const got = consumers[1]?.got ?? [];
      const last = got.slice(got.length - repeated.length);
      expect(repeated.toSorted(ascending)).toEqual(last.toSorted(ascending));
      expect(Math.min(...repeated)).toBeGreaterThan(100);
      for (const consumer of consumers) await consumer.end();
      await publisher.endAsync(true);
    },
    timeoutMs,
  );

  it(
    "the other nodes publish the will of a client of a killed node once",
    async () => {
      const witness = new Consumer(cluster, "witness");
      await witness.connect(0);
      await witness.subscribe("wills", 1);
      const will = { topic: "wills", payload: Buffer.from("1"), qos: 1, retain: false } as const;
      const lost = await connectAsync(addressOf(cluster, 1), { protocolVersion: 5, reconnectPeriod: 0, will });
      lost.on("error", () => {});
      await cluster.nodes[1]?.kill();
      await witness.untilGot(1);
      await cluster.nodes[1]?.start();
      expect(await cluster.nodes[0]?.client.exist("wills")).toBe(true);
      expect(witness.got).toEqual([1]);
      await witness.end();
      await lost.endAsync(true);
    },
    timeoutMs,
  );
});
