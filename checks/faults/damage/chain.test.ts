import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runBroker } from "../../harness/broker-process.ts";
import {
  chainOf,
  changeFile,
  deleteStore,
  fillFolder,
  type FilledFolder,
  placeOfText,
} from "../support/damaged-store.ts";

const eventsTotal = 240;

describe("a damaged embedded chain", () => {
  let filled: FilledFolder;
  beforeAll(async () => {
    filled = await fillFolder(eventsTotal);
  });
  afterAll(() => filled[Symbol.dispose]());

  it("a flipped bit in a block of the chain, and no store to restore it from: the start fails, names the block and a remedy, and changes nothing", async () => {
    using folder = filled.copy();
    const event = filled.events[30];
    if (event === undefined) throw new Error("the folder has too few events");
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
      stderr: expect.stringMatching(
        new RegExp(`chain\\.sqlite is damaged: Block ${block} .*Restore the data folder from a backup`),
      ),
    });
    expect(readFileSync(chainOf(folder)).equals(before)).toBe(true);
  });
});
