import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { mutate } from "../../harness/mutation.ts";
import { createRandom, type Random, seedsOf } from "../../harness/random.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { whenClosed } from "../../harness/when-closed.ts";
import { peakMebibytes } from "../../hostile/support/process-memory.ts";
import { Context } from "./context.ts";
import { toBytes, versions } from "./frames.ts";

/** Mutated frames of one seed; twenty rounds of the long run make a million. */
const framesPerSeed = process.env["CHECKS_ROUNDS"] === undefined ? 20_000 : 50_000;
const framesPerConnection = 20;
const connectionsAtOnce = 20;
const peakMebibytesMax = 512;

/** One frame of each kind that a client may send. */
const frames = [
  { command: "SEND", headers: { destination: "mutated", "svc-a": "b:c\n", receipt: "1" }, body: "text" },
  { command: "SEND", headers: { destination: "mutated", "content-length": "3", transaction: "t" }, body: "a\0b" },
  { command: "SUBSCRIBE", headers: { id: "1", destination: "mutated,x/#", ack: "client", "prefetch-count": "5" } },
  { command: "SUBSCRIBE", headers: { id: "2", destination: "+/x", eventId: "OFFSET_FIRST", receipt: "2" } },
  { command: "UNSUBSCRIBE", headers: { id: "1" } },
  { command: "ACK", headers: { id: "1-x", "message-id": "x", subscription: "1" } },
  { command: "NACK", headers: { id: "1-x", "message-id": "x", subscription: "1" } },
  { command: "BEGIN", headers: { transaction: "t" } },
  { command: "COMMIT", headers: { transaction: "t", receipt: "3" } },
  { command: "ABORT", headers: { transaction: "t" } },
  { command: "DISCONNECT", headers: { receipt: "4" } },
];

let folder: TempFolder;
let broker: BrokerProcess;
let port: number;
beforeAll(async () => {
  folder = createTempFolder();
  // Mutated names must not open topics: that is slow, and no part of this test.
  broker = await startBroker({ dataDir: folder.path, env: { STELE_STOMP_PORT: "0", STELE_STOMP_AUTO_OPEN: "off" } });
  port = Number(/^ {2}STOMP +stomp:.*:(\d+)$/m.exec(broker.stderr())?.[1]);
  await new Client(broker.url).open("mutated");
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

/** Leaves some as they are, so that more of the dialogue is reached. */
function mutateFrame(bytes: Buffer, random: Random): Buffer {
  const byte = random.pick([0, 10, 13, 58, 92, random.below(256)]);
  return random.below(6) === 0 ? bytes : mutate(bytes, random, byte);
}

/** Sends a CONNECT, seldom mutated too, and mutated frames. The broker must answer by frames, and close. */
async function attack(random: Random): Promise<void> {
  const version = random.pick(versions);
  const headers = version === "1.0" ? {} : { "accept-version": version, host: "localhost" };
  const hello = toBytes({ command: "CONNECT", headers }, version);
  const mutants = Array.from({ length: framesPerConnection }, () =>
    mutateFrame(toBytes(random.pick(frames), version), random),
  );
  const socket = connect(port, "127.0.0.1");
  const answers: Buffer[] = [];
  const closed = whenClosed(socket);
  socket.on("data", (chunk: Buffer) => answers.push(chunk));
  socket.end(Buffer.concat([random.below(10) === 0 ? mutateFrame(hello, random) : hello, ...mutants]));
  await closed;
  const text = Buffer.concat(answers).toString("latin1");
  expect(text).toMatch(/^(\n*(CONNECTED|RECEIPT|MESSAGE|ERROR)\n[\s\S]*?\0)*\n*$/);
}

it.each(seedsOf("CHECKS_STOMP_SEEDS", [1]))(
  "mutated frames end connections by an ERROR and nothing else, seed %s",
  async (seed) => {
    const count = framesPerSeed / framesPerConnection / connectionsAtOnce;
    const context = new Context({
      addresses: { tcp: port, websocket: "" },
      transport: "tcp",
      version: "1.2",
      cut: "frames",
      name: "mutated",
    });
    const honest = await context.subscribed();
    const attackInTurn = async (random: Random): Promise<void> => {
      for (let index = 0; index < count; index += 1) await attack(random);
    };
    await Promise.all(
      Array.from({ length: connectionsAtOnce }, (_, index) =>
        attackInTurn(createRandom(seed * connectionsAtOnce + index)),
      ),
    );
    await context.publish("still here");
    let text = "";
    while (text !== "still here") text = (await honest.next("MESSAGE")).body.toString();
    context.close();
    expect(broker.stdout()).not.toContain("connection failed");
    expect(peakMebibytes(broker.pid)).toBeLessThan(peakMebibytesMax);
  },
  600_000,
);
