import { afterAll, beforeAll, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { portOf } from "../../harness/listener-port.ts";
import { createRandom, type Random, seedsOf } from "../../harness/random.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { peakMebibytes, residentMebibytes } from "../../hostile/support/process-memory.ts";
import { Context } from "./context.ts";
import { attack, type Outcome, type Target } from "./mutants.ts";

const isLong = process.env["CHECKS_ROUNDS"] !== undefined;
/** Mutated frames of one seed, each on a connection of its own; twenty rounds of the long run make a million. */
const mutantsPerSeed = isLong ? 50_000 : 800;
const seeds = seedsOf("CHECKS_STOMP_SEEDS", [1]);
const connectionsAtOnce = 40;
/** After each part, the memory of the broker is read, and an honest client publishes and gets its event. */
const partsPerSeed = isLong ? 2 : 4;
const peakMebibytesMax = 512;
/** More than the memory of a broker moves by itself. With a million mutants, 140 bytes kept of each would show. */
const growthMebibytesMax = 64;

let folder: TempFolder;
let broker: BrokerProcess;
beforeAll(async () => {
  folder = createTempFolder();
  // Mutated names must not open topics: that is slow, and no part of this test.
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

/** Each outcome, and how often. */
type Tally = Record<Outcome, number>;

async function attackOften(target: Target, random: Random, tally: Tally): Promise<void> {
  const count = mutantsPerSeed / connectionsAtOnce / partsPerSeed;
  for (let left = count; left > 0; left -= 1) tally[await attack(target, random)] += 1;
}

function createRandoms(seed: number): readonly Random[] {
  return Array.from({ length: connectionsAtOnce }, (_, index) => createRandom(seed * connectionsAtOnce + index));
}

it(
  "answers a mutated frame in any state with an ERROR, another frame or a close, and keeps nothing of it",
  async () => {
    const given = createContext("given");
    const target = { port: portOf(broker, "STOMP"), topic: "given", eventId: await given.publish("once") };
    given.close();
    const honest = createContext("honest");
    const subscriber = await honest.subscribed();
    const tally: Tally = { ERROR: 0, answered: 0, closed: 0 };
    const mebibytes: number[] = [];
    const parts = seeds.flatMap((seed) => {
      const randoms = createRandoms(seed);
      return Array.from({ length: partsPerSeed }, () => randoms);
    });
    for (const randoms of parts) {
      await Promise.all(randoms.map((random) => attackOften(target, random, tally)));
      mebibytes.push(Math.round(residentMebibytes(broker.pid)));
      process.stdout.write(`mutated STOMP so far: ${JSON.stringify(tally)}; ${mebibytes.at(-1)} MiB\n`);
      await honest.publish("still here");
      expect(await honest.take(subscriber, 1)).toEqual(["still here"]);
    }
    honest.close();
    const most = Math.max(...mebibytes.slice(0, parts.length / 2));
    const least = Math.min(...mebibytes.slice(parts.length / 2));
    expect(tally.ERROR + tally.answered + tally.closed).toBe(mutantsPerSeed * seeds.length);
    for (const count of Object.values(tally)) expect(count).toBeGreaterThan(mutantsPerSeed / 100);
    expect(broker.stdout()).not.toContain("connection failed");
    expect(least - most).toBeLessThan(growthMebibytesMax);
    expect(peakMebibytes(broker.pid)).toBeLessThan(peakMebibytesMax);
  },
  isLong ? 36_000_000 : 600_000,
);
