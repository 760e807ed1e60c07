import { afterAll, beforeAll, expect, it } from "vitest";
import { Context } from "../conformance/mqtt/context.ts";
import type { Peer } from "../conformance/mqtt/peer.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";
import { peakMebibytes } from "./support/process-memory.ts";

const idleCount = 5_000;
/** Upper bound on the broker's memory for an idle connection; measured: 22 KiB. */
const idleKibibytesMax = 60;
const honestWaitMsMax = 5_000;

let folder: TempFolder;
let broker: BrokerProcess;
let context: Context;
beforeAll(async () => {
  folder = createTempFolder();
  broker = await startBroker({ dataDir: folder.path, env: { STELE_MQTT_PORT: "0" } });
  const [, port] = /^ {2}MQTT +mqtt:.*:(\d+)$/m.exec(broker.stderr()) ?? [];
  context = new Context({
    addresses: { tcp: Number(port), websocket: "" },
    transport: "tcp",
    version: 5,
    name: "many",
  });
});
afterAll(async () => {
  context.close();
  await broker.stop();
  folder[Symbol.dispose]();
});

/** Runs `connect` for each index below `count`, a hundred at once. */
async function connectAll(count: number, connect: (index: number) => Promise<Peer>): Promise<Peer[]> {
  const peers: Peer[] = [];
  while (peers.length < count) {
    const first = peers.length;
    peers.push(...(await Promise.all(Array.from({ length: 100 }, async (_, index) => connect(first + index)))));
  }
  return peers;
}

/** Publishes as an honest client. Returns the milliseconds until the broker acknowledges. */
async function honestWaitMs(honest: Peer): Promise<number> {
  const startedAt = performance.now();
  await context.publish("honest", { topic: "many/honest" }, honest);
  return performance.now() - startedAt;
}

it("5,000 idle connections need less than 60 KiB of memory each, and do not delay an honest publish", async () => {
  const honest = await context.connect("honest");
  await honestWaitMs(honest);
  const before = peakMebibytes(broker.pid);
  await connectAll(idleCount, async (index) => context.connect(`idle-${index}`));
  const kibibytes = ((peakMebibytes(broker.pid) - before) * 1024) / idleCount;
  expect(kibibytes).toBeLessThan(idleKibibytesMax);
  expect(await honestWaitMs(honest)).toBeLessThan(honestWaitMsMax);
});
