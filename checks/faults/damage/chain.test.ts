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
});
