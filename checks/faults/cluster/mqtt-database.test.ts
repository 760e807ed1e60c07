import { connect, type MqttClient } from "mqtt";
import { describe, expect, it } from "vitest";
import { Cluster } from "../../harness/cluster.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { until } from "../../harness/until.ts";
import { untilDown, untilReady } from "../support/node-health.ts";

const timeoutMs = 240_000;
const waitMs = 60_000;
const serverUnavailable = 0x88;

/** An MQTT client with a session. It reconnects whenever its connection ends, as stock clients do. */
class SessionClient {
  readonly mqtt: MqttClient;
  /** For each connection, whether the broker had the session. */
  readonly sessions: boolean[] = [];
  /** Reason codes of refused connections. */
  readonly refusals: number[] = [];

  constructor(url: string, clientId: string) {
    const properties = { sessionExpiryInterval: 600 };
    const session = { clientId, clean: false, properties, reconnectOnConnackError: true };
    this.mqtt = connect(`${url.replace(/^http/, "ws")}/mqtt`, { ...session, protocolVersion: 5, reconnectPeriod: 100 });
    this.mqtt.on("error", (error) => {
      if ("code" in error && typeof error.code === "number") this.refusals.push(error.code);
    });
    this.mqtt.on("connect", ({ sessionPresent }) => this.sessions.push(sessionPresent));
  }

  async connected(): Promise<void> {
    await until("the client is connected", () => this.mqtt.connected, { timeoutMs: waitMs });
  }
}

/** Publishes 1, 2, 3 … to its own topic, and repeats each number until it is acknowledged. */
class Publisher extends SessionClient {
  readonly topic: string;
  readonly #qos: 1 | 2;
  acknowledged = 0;
  #isEnding = false;
  #done: Promise<void> = Promise.resolve();

  constructor(url: string, { topic, qos }: { readonly topic: string; readonly qos: 1 | 2 }) {
    super(url, `publisher of ${topic}`);
    this.topic = topic;
    this.#qos = qos;
  }

  begin(): void {
    this.#done = (async () => {
      while (!this.#isEnding) if (await this.#publish(this.acknowledged + 1)) this.acknowledged += 1;
    })();
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#done;
    await this.mqtt.endAsync(true);
  }

  async #publish(number: number): Promise<boolean> {
    await this.connected();
    return this.mqtt.publishAsync(this.topic, String(number), { qos: this.#qos }).then(
      () => true,
      () => false,
    );
  }
}

describe.runIf(hasPostgres)(titleOf("MQTT on nodes whose database stops and returns"), () => {
  it(
    "PostgreSQL goes away and returns: no publish is acknowledged meanwhile, no acknowledged event is lost, and every session resumes",
    async () => {
      await using cluster = await Cluster.start({ nodeCount: 2, env: { STELE_MQTT_PORT: "0" } });
      const { server } = cluster.database;
      const urls = cluster.nodes.map(({ url }) => url);
      const consumer = new SessionClient(urls[1] ?? "", "consumer");
      const got = new Map<string, number[]>();
      consumer.mqtt.on("message", (topic, payload) => {
        got.set(topic, [...(got.get(topic) ?? []), Number(String(payload))]);
      });
      await consumer.mqtt.subscribeAsync("load/#", { qos: 1 });
      const publishers = ([1, 1, 2] as const).map(
        (qos, index) => new Publisher(urls[index % 2] ?? "", { topic: `load/${index}`, qos }),
      );
      const acknowledged = (): number[] => publishers.map((one) => one.acknowledged);
      const untilMore = async (): Promise<void> => {
        const before = acknowledged();
        const isMore = (): boolean => acknowledged().every((count, index) => count >= (before[index] ?? 0) + 10);
        await until("every publisher has published more", isMore, { timeoutMs: waitMs });
      };
      for (const publisher of publishers) publisher.begin();
      await untilMore();

      await server.kill();
      for (const node of cluster.nodes) await untilDown(node);
      expect(await cluster.nodes[0]?.client.listGroupFailures()).toEqual([
        expect.stringContaining("database cannot be reached"),
      ]);
      const whenDown = acknowledged();
      const newcomer = new SessionClient(urls[0] ?? "", "newcomer");
      await until("the newcomer was refused", () => newcomer.refusals.length > 0, { timeoutMs: waitMs });
      expect(acknowledged()).toEqual(whenDown);
      expect(newcomer.sessions).toEqual([]);
      expect(new Set(newcomer.refusals)).toEqual(new Set([serverUnavailable]));
      await server.resume();
      for (const node of cluster.nodes) await untilReady(node);

      await newcomer.connected();
      await untilMore();
      for (const publisher of publishers) await publisher.end();
      for (const { topic, acknowledged: count } of publishers) {
        await until(`every number of ${topic} arrives`, () => got.get(topic)?.includes(count), { timeoutMs: waitMs });
        // The first copies come in order, without a gap.
        expect([...new Set(got.get(topic))].slice(0, count)).toEqual(Array.from({ length: count }, (_, at) => at + 1));
      }
      for (const { sessions } of [consumer, ...publishers]) expect(sessions.slice(1)).not.toContain(false);
      for (const { mqtt } of [consumer, newcomer]) await mqtt.endAsync(true);
    },
    timeoutMs,
  );
});
