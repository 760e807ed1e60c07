import { connect } from "node:net";
import mqttPacket, { type Packet } from "mqtt-packet";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { mutate } from "../../harness/mutation.ts";
import { createRandom, type Random, seedsOf } from "../../harness/random.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { whenClosed } from "../../harness/when-closed.ts";
import { peakMebibytes } from "../../hostile/support/process-memory.ts";
import { Context } from "./context.ts";

/** Mutated packets of one seed; twenty rounds of the long run make a million. */
const packetsPerSeed = process.env["CHECKS_ROUNDS"] === undefined ? 2_000 : 50_000;
const packetsPerConnection = 5;
const connectionsAtOnce = 20;
const peakMebibytesMax = 512;

const properties = {
  userProperties: { a: "b" },
  contentType: "text/plain",
  responseTopic: "answers",
  correlationData: Buffer.from("c"),
  messageExpiryInterval: 9,
  topicAlias: 1,
};

/** One packet of each kind that a client may send. */
const packets: readonly object[] = [
  { cmd: "publish", topic: "mutated", payload: "0", qos: 0 },
  { cmd: "publish", topic: "mutated", payload: "1", qos: 1, messageId: 1, properties },
  { cmd: "publish", topic: "mutated", payload: "2", qos: 2, messageId: 2, retain: true },
  { cmd: "puback", messageId: 1 },
  { cmd: "pubrec", messageId: 1 },
  { cmd: "pubrel", messageId: 2 },
  { cmd: "pubcomp", messageId: 1 },
  {
    cmd: "subscribe",
    messageId: 3,
    subscriptions: [
      { topic: "mutated/#", qos: 2 },
      { topic: "+/x", qos: 0 },
    ],
  },
  { cmd: "unsubscribe", messageId: 4, unsubscriptions: ["mutated/#"] },
  { cmd: "pingreq" },
  { cmd: "disconnect", reasonCode: 0 },
  {
    cmd: "connect",
    clientId: "second",
    clean: false,
    keepalive: 1,
    will: { topic: "w", payload: "w", qos: 1, retain: false },
  },
];

let folder: TempFolder;
let broker: BrokerProcess;
let port: number;
beforeAll(async () => {
  folder = createTempFolder();
  // Mutated names must not open topics: that is slow, and no part of this test.
  broker = await startBroker({ dataDir: folder.path, env: { STELE_MQTT_PORT: "0", STELE_MQTT_AUTO_OPEN: "off" } });
  port = Number(/^ {2}MQTT +mqtt:.*:(\d+)$/m.exec(broker.stderr())?.[1]);
  await new Client(broker.url).open("mutated");
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

function toBytes(packet: object, version: 4 | 5): Buffer {
  const whole = { protocolId: "MQTT", protocolVersion: version, ...packet };
  return mqttPacket.generate(whole as Packet, { protocolVersion: version }); // fields by the table above
}

/** Sends a CONNECT, as often as not mutated too, and mutated packets; answers when the broker has closed. */
async function attack(random: Random, name: string): Promise<void> {
  const version = random.pick([4, 5] as const);
  const hello = toBytes({ cmd: "connect", clientId: name, clean: random.below(2) === 0, keepalive: 0 }, version);
  const mutants = Array.from({ length: packetsPerConnection }, () =>
    mutate(toBytes(random.pick(packets), version), random, random.below(256)),
  );
  const socket = connect(port, "127.0.0.1");
  const closed = whenClosed(socket);
  socket.resume();
  socket.end(Buffer.concat([random.below(10) === 0 ? mutate(hello, random, random.below(256)) : hello, ...mutants]));
  await closed;
}

async function attackInTurn(
  random: Random,
  { name, count }: { readonly name: string; readonly count: number },
): Promise<void> {
  for (let index = 0; index < count; index += 1) await attack(random, `${name}-${index}`);
}

it.each(seedsOf("CHECKS_MQTT_SEEDS", [1]))(
  "mutated packets end connections and nothing else, seed %s",
  async (seed) => {
    const count = packetsPerSeed / packetsPerConnection / connectionsAtOnce;
    await Promise.all(
      Array.from({ length: connectionsAtOnce }, (_, index) =>
        attackInTurn(createRandom(seed * connectionsAtOnce + index), { name: `m${seed}-${index}`, count }),
      ),
    );
    const context = new Context({
      addresses: { tcp: port, websocket: "" },
      transport: "tcp",
      version: 5,
      name: "mutated",
    });
    const honest = await context.connect(`honest-${seed}`);
    await context.publish("still here", {}, honest);
    context.close();
    expect(broker.stdout()).not.toContain("MQTT connection failed");
    expect(peakMebibytes(broker.pid)).toBeLessThan(peakMebibytesMax);
  },
  600_000,
);
