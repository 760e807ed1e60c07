import { afterAll, beforeAll, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { portOf } from "../../harness/listener-port.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { mutantsTimeoutMs, runMutants } from "../mutants/run-mutants.ts";
import { Context } from "./context.ts";
import { attack, outcomes } from "./mutants.ts";

let folder: TempFolder;
let broker: BrokerProcess;
beforeAll(async () => {
  folder = createTempFolder();
  // Mutated names must not open topics: that is slow, and not what this test checks.
  const env = { STELE_STOMP_PORT: "0", STELE_STOMP_AUTO_OPEN: "off", STELE_LOG_LEVEL: "warn" };
  broker = await startBroker({ dataDir: folder.path, env });
  await using client = new Client(broker.url);
  for (const topic of ["mutated", "given", "honest"]) await client.open(topic);
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

function createContext(name: string): Context {
  const addresses = { tcp: portOf(broker, "STOMP"), websocket: "" };
  return new Context({ addresses, transport: "tcp", version: "1.2", cut: "frames", name });
}

it(
  "a mutated frame in any state is answered with an ERROR, another frame or a close, and the broker's memory does not grow",
  async () => {
    const given = createContext("given");
    const target = { port: portOf(broker, "STOMP"), topic: "given", eventId: await given.publish("once") };
    given.close();
    const honest = createContext("honest");
    const subscriber = await honest.subscribed();
    await runMutants({
      protocol: "STOMP",
      broker,
      seedsVariable: "CHECKS_STOMP_SEEDS",
      outcomes,
      attack: (random) => attack(target, random),
      serveHonest: async () => {
        await honest.publish("still here");
        expect(await honest.take(subscriber, 1)).toEqual(["still here"]);
      },
    });
    honest.close();
  },
  mutantsTimeoutMs,
);
