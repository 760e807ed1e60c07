import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { toQuery } from "../harness/apis.ts";
import { portOf } from "../harness/listener-port.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { whenClosed } from "../harness/when-closed.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { oddFrame, oddHello } from "./support/odd-frames.ts";
import { type MqttVersion, oddConnect, oddPacket } from "./support/odd-packets.ts";
import { type KnownValues, OddValues } from "./support/odd-values.ts";

const connectionsPerSeed = 200;
const connectionsAtOnce = 8;
const unitsMax = 12;
const topics = ["fuzz/a", "fuzz/b", "fuzz"];
const env = { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0", STELE_LOG_FORMAT: "json", STELE_LOG_LEVEL: "info" };
/** The catalogue's code for unexpected errors: in a header of STOMP, a reason string of MQTT, or a JSON text. */
const unforeseen = /code:200000\b|\b200000 |"code":200000\b/;
/** The broker logs an error with a stack if it considers the error its own fault. */
const defect = /"level":"error"|"stack":|"code":200000\b/;

let world: RunningWorld;
let known: KnownValues;
beforeAll(async () => {
  world = await embeddedWorld.start({ env });
  const { client } = world;
  for (const topic of topics) await client.open(topic);
  const published = await Promise.all(topics.map((topic) => client.publish(topic, '{"a":[1]}', { "svc-a": "b" })));
  const url = "http://127.0.0.1:65535/";
  const subscriptionIds = [await client.subscribe({ topic: "fuzz/a", url })];
  known = { topics, eventIds: published.map(({ eventId }) => eventId), subscriptionIds };
});
afterAll(() => world[Symbol.asyncDispose]());

/** Sends odd bytes on a new connection; returns them, and what the broker sent until it closed the connection. */
type Talk = (values: OddValues, name: string) => Promise<{ readonly sent: Buffer; readonly received: string }>;

async function talkOver(socket: Socket, pieces: readonly Buffer[]): ReturnType<Talk> {
  const closed = whenClosed(socket);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const sent = Buffer.concat(pieces);
  socket.end(sent);
  await closed;
  return { sent, received: Buffer.concat(chunks).toString("latin1") };
}

const mqtt: Talk = (values, name) => {
  const version: MqttVersion = values.random.pick([4, 5]);
  const count = values.random.below(unitsMax);
  const packets = Array.from({ length: count }, () => oddPacket(values, version) ?? Buffer.alloc(0));
  return talkOver(connect(portOf(world.broker, "MQTT"), "127.0.0.1"), [oddConnect(values, version, name), ...packets]);
};

const stomp: Talk = (values) => {
  const { bytes, version } = oddHello(values);
  const frames = Array.from({ length: values.random.below(unitsMax) }, () => oddFrame(values, version));
  return talkOver(connect(portOf(world.broker, "STOMP"), "127.0.0.1"), [bytes, ...frames]);
};

const filters = [
  "$.a == 1",
  "$",
  "$.a[0] == 1",
  '$["a"] == "\\ud800"',
  "$.a == 1e999",
  "$.__proto__ == null",
  "$.a ==",
];

/** Requests a tail. Once the tail answers, sends a second request on the connection: this makes the broker end the tail. */
const tail: Talk = async (values) => {
  const { random } = values;
  const some = (name: string, value: string): Record<string, string> =>
    random.below(3) === 0 ? {} : { [name]: value };
  const query = toQuery({
    ...some("topic", wellFormed(values.parameter("topic", 60))),
    ...some("after", random.pick(["OFFSET_FIRST", values.eventId(), wellFormed(values.parameter("offset", 60))])),
    ...(random.below(3) === 0 ? { filter: random.pick([...filters, wellFormed(values.text(60))]) } : {}),
    ...(random.below(3) === 0 ? { format: random.pick(["cloudevents", "interface", "x"]) } : {}),
  });
  const last = random.below(5) === 0 ? `last-event-id: ${values.eventId()}\r\n` : "";
  const accept = random.pick(["*/*", "text/event-stream", "application/x-ndjson"]);
  const head = `GET /tail?${query} HTTP/1.1\r\nhost: localhost\r\naccept: ${accept}\r\n${last}\r\n`;
  const socket = connect(Number(new URL(world.broker.url).port), "127.0.0.1");
  const closed = whenClosed(socket);
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    if (received === "") socket.write("GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    received += chunk.toString("latin1");
  });
  socket.write(head);
  await closed;
  return { sent: Buffer.from(head), received };
};

/** Replaces halves of surrogate pairs, which a URL cannot contain. */
function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, "?");
}

/** Runs concurrent clients; returns the exchanges with an unknown error. Each client has its own random numbers, so that the same seed sends the same bytes. */
async function run(talk: Talk, seed: number): Promise<readonly string[]> {
  const found: string[] = [];
  let answered = 0;
  const work = async (client: number): Promise<void> => {
    const values = new OddValues(createRandom(seed * connectionsAtOnce + client), known);
    const name = `${seed}-${client}`;
    for (let left = connectionsPerSeed / connectionsAtOnce; left > 0; left -= 1) {
      const { sent, received } = await talk(values, name);
      if (received !== "") answered += 1;
      if (unforeseen.test(received)) found.push(`${sent.toString("latin1", 0, 2_000)} → ${received.slice(-500)}`);
    }
  };
  await Promise.all(Array.from({ length: connectionsAtOnce }, async (_, client) => work(client)));
  expect(answered).toBeGreaterThan(connectionsPerSeed / 2);
  return found;
}

const seeds = seedsOf("CHECKS_FUZZ_SEEDS", [9, Date.now() % 1_000_000_000]);
it.each([
  ["MQTT", mqtt],
  ["STOMP", stomp],
  ["/tail", tail],
])(
  `${connectionsPerSeed} odd connections of %s get no unknown error and leave no stack in the log`,
  async (_name, talk) => {
    for (const seed of seeds) {
      const found = await run(talk, seed);
      expect(found.slice(0, 5), `seed ${seed}`).toEqual([]);
      const lines = world.broker.stdout().split("\n");
      expect(lines.filter((line) => defect.test(line)).slice(0, 10), `seed ${seed}`).toEqual([]);
      // A broker that had died would not answer.
      expect(await world.client.isReady()).toBe(true);
    }
  },
);
