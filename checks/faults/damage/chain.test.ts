import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runBroker } from "../../harness/broker-process.ts";
import { createRandom, seedsOf } from "../../harness/random.ts";
import {
  chainOf,
  changeFile,
  deleteStore,
  fillFolder,
  type FilledFolder,
  flipBits,
  placeOfText,
} from "../support/damaged-store.ts";
import { runUntilSettled } from "../support/damage-trial.ts";

const eventsTotal = 240;
const remedy = /^stele: .*chain\.sqlite.*(damaged|malformed|not a database)/m;

describe("an embedded chain that is damaged (issue: Integrity)", () => {
  let filled: FilledFolder;
  beforeAll(async () => {
    filled = await fillFolder(eventsTotal);
  });
  afterAll(() => filled[Symbol.dispose]());

  it("is not indexed anew from a block with a flipped bit: the start ends with its number and a remedy", async () => {
    using folder = filled.copy();
    const event = filled.events[30];
    if (event === undefined) throw new Error("there are not so many events");
    changeFile(chainOf(folder), (bytes) => {
      const at = placeOfText(bytes, event.content) + 2;
      bytes[at] = (bytes[at] ?? 0) ^ 1;
    });
    deleteStore(folder);
    const before = readFileSync(chainOf(folder));
    const { code, stderr } = await runBroker({ dataDir: folder.path });
    const [, , block] = event.eventId.split("-");
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(new RegExp(`chain\\.sqlite is damaged: Block ${block} .*Restore it from a backup`)),
    });
    expect(readFileSync(chainOf(folder)).equals(before)).toBe(true);
  });

  it.each(seedsOf("CHECKS_DAMAGE_SEEDS", [1, 2, 3, 4]))(
    "with any bits flipped, and the store gone, gives every event right or does not start (seed %i)",
    async (seed) => {
      const random = createRandom(seed);
      using folder = filled.copy();
      flipBits(chainOf(folder), { count: 1 + random.below(20), random });
      deleteStore(folder);
      expect(await runUntilSettled(folder, filled, remedy)).toMatch(/right|ended/);
    },
  );

  it.each(seedsOf("CHECKS_DAMAGE_SEEDS", [11, 12]))(
    "with any bits flipped beside a whole store gives every event right or does not start (seed %i)",
    async (seed) => {
      const random = createRandom(seed);
      using folder = filled.copy();
      flipBits(chainOf(folder), { count: 1 + random.below(20), random });
      expect(await runUntilSettled(folder, filled, remedy)).toMatch(/right|ended/);
    },
  );
});
