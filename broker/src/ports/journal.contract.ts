import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseGroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";
import type { Journal, JournalEntry } from "./journal.ts";

/** A journal, and the lifecycle of its store. */
export type JournalStore = Journal & { start(): Promise<void>; stop(): Promise<void> };

const group = parseGroupId("1");
const otherGroup = parseGroupId("2");
const sender: Address = `0x${"11".repeat(20)}`;
const otherSender: Address = `0x${"22".repeat(20)}`;
const hashOf = (seed: number): Hash => `0x${seed.toString(16).padStart(64, "0")}`;

const entryOf = (nonce: number, change: Partial<JournalEntry> = {}): JournalEntry => ({
  groupId: group,
  sender,
  nonce,
  variants: [{ hash: hashOf(nonce), raw: new Uint8Array([2, nonce % 256, 0, 255]) }],
  recordedAt: 1_800_000_000_000 + nonce,
  ...change,
});

/** Replaces the bytes of each variant by text, which Vitest compares faster than 200,000 elements. */
function toText(entry: JournalEntry) {
  const variants = entry.variants.map(({ raw, ...variant }) => ({ ...variant, raw: Buffer.from(raw).toString("hex") }));
  return { ...entry, variants };
}

/** The guarantees of the Journal port. `create` returns an empty store that is not started. */
export function testJournal(name: string, create: () => Promise<JournalStore>): void {
  describe(`${name} keeps the journal's contract`, () => {
    let journal: JournalStore;
    beforeEach(async () => {
      journal = await create();
      await journal.start();
    });
    afterEach(async () => journal.stop());

    it("an empty journal lists nothing", async () => {
      expect(await journal.listTransactions(group, sender)).toEqual([]);
    });

    it("lists entries by ascending nonce, whatever the order of their recording", async () => {
      await journal.recordTransactions([entryOf(10), entryOf(2)]);
      await journal.recordTransactions([entryOf(9)]);
      await journal.recordTransactions([]);
      expect(await journal.listTransactions(group, sender)).toEqual([entryOf(2), entryOf(9), entryOf(10)]);
    });

    it("keeps groups and senders apart", async () => {
      await journal.recordTransactions([
        entryOf(1),
        entryOf(1, { groupId: otherGroup, recordedAt: 1 }),
        entryOf(1, { sender: otherSender, recordedAt: 2 }),
      ]);
      await journal.removeTransactions(group, sender, [1]);
      expect(await journal.listTransactions(group, sender)).toEqual([]);
      expect(await journal.listTransactions(otherGroup, sender)).toMatchObject([{ recordedAt: 1 }]);
      expect(await journal.listTransactions(group, otherSender)).toMatchObject([{ recordedAt: 2 }]);
    });

    it("replaces an entry with the same nonce, and keeps the order of its variants", async () => {
      await journal.recordTransactions([entryOf(1), entryOf(2)]);
      const big = new Uint8Array(200_000).fill(0xee);
      const variants = [
        { hash: hashOf(77), raw: big },
        { hash: hashOf(78), raw: new Uint8Array(0) },
        ...entryOf(1).variants,
      ];
      const replaced = entryOf(1, { variants, recordedAt: 5 });
      await journal.recordTransactions([replaced]);
      const listed = await journal.listTransactions(group, sender);
      expect(listed.map(toText)).toEqual([replaced, entryOf(2)].map(toText));
    });

    it("removes entries without touching others, and ignores unknown nonces", async () => {
      await journal.recordTransactions([entryOf(1), entryOf(2), entryOf(3)]);
      await journal.removeTransactions(group, sender, [1, 3, 99]);
      await journal.removeTransactions(group, sender, []);
      expect(await journal.listTransactions(group, sender)).toEqual([entryOf(2)]);
    });

    it("accepts more entries in one call than one statement can have parameters", async () => {
      const many = Array.from({ length: 5000 }, (_, nonce) => entryOf(nonce));
      await journal.recordTransactions(many);
      expect(await journal.listTransactions(group, sender)).toHaveLength(5000);
      await journal.removeTransactions(group, sender, [...many.keys()]);
      expect(await journal.listTransactions(group, sender)).toEqual([]);
    });

    it("keeps everything after a restart", async () => {
      const highest = entryOf(Number.MAX_SAFE_INTEGER, { recordedAt: 1 });
      await journal.recordTransactions([entryOf(1), highest]);
      await journal.stop();
      await journal.start();
      expect(await journal.listTransactions(group, sender)).toEqual([entryOf(1), highest]);
    });
  });
}
