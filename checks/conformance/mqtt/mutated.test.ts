import { afterAll, beforeAll, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { portOf } from "../../harness/listener-port.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { mutantsTimeoutMs, runMutants } from "../mutants/run-mutants.ts";
import { Context, textsOf } from "./context.ts";
import { outcomes } from "./mutant-answers.ts";
import { attack } from "./mutants.ts";
import type { Peer } from "./peer.ts";

const topic = "mutated";
const retaining = "given";

let folder: TempFolder;
let broker: BrokerProcess;
beforeAll(async () => {
  folder = createTempFolder();
  // Mutated names must not open topics: that is slow, and not what this test checks.
  const env = { STELE_MQTT_PORT: "0", STELE_MQTT_AUTO_OPEN: "off", STELE_LOG_LEVEL: "warn" };
  broker = await startBroker({ dataDir: folder.path, env });
  await using client = new Client(broker.url);
  for (const name of [topic, retaining, "honest"]) await client.open(name);
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

/** Publishes a retained event. Its QoS is 2, so that subscribers get it with the QoS that they ask for. */
async function retain(publisher: Peer): Promise<void> {
  publisher.send({ cmd: "publish", topic: retaining, payload: "kept", qos: 2, messageId: 1_000, retain: true });
  await publisher.next("pubrec");
  publisher.send({ cmd: "pubrel", messageId: 1_000 });
  await publisher.next("pubcomp");
}

it(
  "a mutated packet in any state is answered with DISCONNECT, another packet or a close, and the broker's memory does not grow",
  async () => {
    const addresses = { tcp: portOf(broker, "MQTT"), websocket: "" };
    const context = new Context({ addresses, transport: "tcp", version: 5, name: "honest" });
    const [publisher, subscriber] = [await context.connect("publisher"), await context.connect("subscriber")];
    await retain(publisher);
    await context.subscribe(subscriber, context.topic);
    await runMutants({
      protocol: "MQTT",
      broker,
      seedsVariable: "CHECKS_MQTT_SEEDS",
      outcomes,
      attack: (random, lane) => attack({ port: addresses.tcp, topic, retaining }, random, lane),
      serveHonest: async () => {
        await context.publish("still here", {}, publisher);
        expect(textsOf(await context.receive(subscriber, 1))).toEqual(["still here"]);
      },
    });
    context.close();
  },
  mutantsTimeoutMs,
);
