import { decodeEvents, encodeEvents } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EventPayload } from "../domain/event.ts";
import type { Address } from "../domain/topic.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import type { BatchOutcome, Ledger, OutgoingBatch, TopicOpening } from "./ledger.ts";
import { collect, collectAll, contents, expectOrdered, flat, refOf } from "./testing/followed-blocks.ts";
import { toOutgoingBatch } from "./testing/outgoing-batch.ts";

/** A batch that a foreign account writes directly to the contract; its `count` may be wrong. */
export interface RawBatch {
  readonly address: Address;
  readonly count: number;
  readonly events: Uint8Array;
}

/** One chain for one test, with its ledgers. */
export interface LedgerHarness {
  /** A ledger on this chain, not started. All ledgers of a harness sign with the same key and find the same registry. */
  createLedger(): Ledger;
  /** Another account that writes to the same contracts with its own key. Each call resolves when its write is committed. */
  readonly stranger: {
    open(name: string): Promise<void>;
    publish(batches: readonly RawBatch[]): Promise<void>;
  };
  dispose(): Promise<void>;
}

const { signal } = new AbortController(); // never aborted
const name = parseTopicName("orders/eu west");
const otherName = parseTopicName("orders/us");
const unknownAddress: Address = `0x${"ab".repeat(20)}`;

const event = (text: string, extensions: EventPayload["extensions"] = []): EventPayload => ({
  content: Buffer.from(text),
  extensions,
});

async function openTopic(ledger: Ledger, topic = name): Promise<Address> {
  const { blockNumber } = await ledger.openTopic(topic, signal);
  const opened = flat(await collect(ledger, -1, (blocks) => (blocks.at(-1)?.number ?? -1) >= blockNumber)).find(
    (entry) => entry.kind === "topic-opened" && entry.name === topic,
  );
  if (opened === undefined) throw new Error(`no topic-opened of ${topic}`);
  return opened.address;
}

const batch = (address: Address, events: readonly EventPayload[], topic = name): OutgoingBatch =>
  toOutgoingBatch({ topic, address, events });

function appendTo(ledger: Ledger, address: Address, ...texts: readonly string[]): Promise<readonly BatchOutcome[]> {
  const events = texts.map((text) => event(text));
  return ledger.append([batch(address, events)], signal);
}

/** The suite that every Ledger passes. */
export function describeLedger(title: string, createHarness: () => Promise<LedgerHarness>): void {
  describe(title, () => {
    let harness: LedgerHarness;
    let ledger: Ledger;

    beforeEach(async () => {
      harness = await createHarness();
      ledger = harness.createLedger();
      await ledger.start();
    });

    afterEach(async () => {
      await ledger.stop();
      await harness.dispose();
    });

    test("opening, closing and reopening are idempotent: each change gives one entry, and the opening names the ledger's account as sender", async () => {
      const { sender } = harness.createLedger();
      const opened = await ledger.openTopic(name, signal);
      expect((await ledger.openTopic(name, signal)).blockNumber).toBeGreaterThanOrEqual(opened.blockNumber);
      await ledger.closeTopic(name, signal);
      await ledger.closeTopic(name, signal);
      const reopened = await ledger.openTopic(name, signal);
      await ledger.openTopic(name, signal);
      const blocks = await collectAll(ledger);
      expect(flat(blocks).map(({ kind }) => kind)).toEqual(["topic-opened", "topic-closed", "topic-reopened"]);
      expect(flat(blocks)[0]).toMatchObject({ sender });
      expect(blocks.find(({ entries }) => entries[0]?.kind === "topic-opened")?.number).toBe(opened.blockNumber);
      expect(blocks.find(({ entries }) => entries[0]?.kind === "topic-reopened")?.number).toBe(reopened.blockNumber);
      expect(new Set(flat(blocks).map(({ address }) => address)).size).toBe(1);
    });

    test("concurrent openings of a topic open it once, and everyone may publish to it", async () => {
      await Promise.all(Array.from({ length: 5 }, () => ledger.openTopic(name, signal)));
      expect(flat(await collectAll(ledger)).map(({ kind }) => kind)).toEqual(["topic-opened"]);
      expect((await ledger.readInfo()).account?.transactionsUnderWay ?? 0).toBe(0);
      expect(await ledger.findWriters(name, signal)).toEqual({ kind: "everyone" });
    });

    test("a topic that never existed cannot be closed, and has no writers", async () => {
      expect(await ledger.findWriters(name, signal)).toBeUndefined();
      await expect(ledger.closeTopic(name, signal)).rejects.toMatchObject({ code: 100101 });
    });

    test("an opened topic has its name and sender; a block has its hash, parent and time in milliseconds", async () => {
      const awkward = parseTopicName(`a "b"\\c/%20 ${String.fromCharCode(128)}`);
      await openTopic(ledger, awkward);
      const blocks = await collectAll(ledger);
      const block = blocks.find(({ entries }) => entries.length > 0);
      const [entry] = block?.entries ?? [];
      expect(entry).toMatchObject({ kind: "topic-opened", name: awkward });
      if (entry?.kind !== "topic-opened") return;
      for (const address of [entry.sender, entry.address]) expect(address).toMatch(/^0x[0-9a-f]{40}$/);
      for (const hash of [block?.hash, block?.parentHash, entry.transactionHash])
        expect(hash).toMatch(/^0x[0-9a-f]{64}$/);
      expect((block?.timestamp ?? 1) % 1000).toBe(0);
      expect(block?.timestamp ?? 0).toBeGreaterThan(Date.UTC(2020, 0, 1));
    });

    test("follow returns appended events byte for byte, in order", async () => {
      const address = await openTopic(ledger);
      const events = [
        event(""),
        event("\u0000"),
        event("plain", [["svc-format", "json"]]),
        event("é", [
          ["svc-ключ", "値 \u{1f600}"],
          ["svc-empty", ""],
        ]),
        event("x".repeat(300)),
      ];
      let isAccepted = false;
      const onAccepted = (): boolean => (isAccepted = true);
      const [outcome] = await ledger.append([batch(address, events)], signal, { onAccepted });
      expect([isAccepted, outcome]).toMatchObject([true, { status: "committed", firstSequence: 1 }]);
      const entry = flat(await collectAll(ledger)).find(({ kind }) => kind === "events-committed");
      if (entry?.kind !== "events-committed" || outcome?.status !== "committed") throw new Error("not committed");
      expect(entry).toMatchObject({ address, firstSequence: 1, count: 5 });
      const plain = decodeEvents(entry.events).map(({ content, extensions }) => ({
        content: Buffer.from(content),
        extensions,
      }));
      expect(plain).toEqual(events);
    });

    test("readCommitted returns the batches at the given places, and nothing for a place without a batch", async () => {
      const address = await openTopic(ledger);
      for (let index = 0; index < 30; index += 1) await appendTo(ledger, address, `${index}`);
      const committed = (await collectAll(ledger)).flatMap(({ entries, number: blockNumber }) =>
        entries.flatMap((entry) => (entry.kind === "events-committed" ? [{ ...entry, blockNumber }] : [])),
      );
      expect(committed).toHaveLength(30);
      expect(await ledger.readCommitted(committed, signal)).toEqual(committed);
      const some = committed.filter((_, index) => index % 7 === 3);
      expect(await ledger.readCommitted(some, signal)).toEqual(some);
      const [first] = committed;
      const nowhere = { blockNumber: first?.blockNumber ?? 0, logIndex: 99 };
      expect(await ledger.readCommitted([nowhere], signal)).toEqual([]);
      expect(await ledger.readCommitted([], signal)).toEqual([]);
    });

    test("commits concurrent appends in the order of the calls", async () => {
      const address = await openTopic(ledger);
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, index) => appendTo(ledger, address, `${index}`)),
      );
      const outcomes = answers.flatMap(([outcome]) => (outcome?.status === "committed" ? outcome : []));
      expect(outcomes.map(({ firstSequence }) => firstSequence)).toEqual(
        Array.from({ length: 40 }, (_, index) => index + 1),
      );
      const blocks = await collectAll(ledger);
      for (const block of blocks) expect(await ledger.readBlock(block.number, signal)).toEqual(block);
      expectOrdered(blocks);
      expect(contents(flat(blocks))).toEqual(Array.from({ length: 40 }, (_, index) => `${index}`));
      for (const outcome of outcomes) {
        const place = blocks.find(({ number }) => number === outcome.blockNumber);
        const entry = place?.entries.find((one) => "count" in one && one.firstSequence === outcome.firstSequence);
        expect(outcome).toMatchObject({ blockHash: place?.hash, transactionHash: entry?.transactionHash });
      }
    });

    test("one append can carry batches of several topics, and several batches of one topic", async () => {
      const first = await openTopic(ledger);
      const second = await openTopic(ledger, otherName);
      const outcomes = await ledger.append(
        [batch(first, [event("a"), event("b")]), batch(second, [event("c")], otherName), batch(first, [event("d")])],
        signal,
      );
      expect(outcomes.map((outcome) => outcome.status === "committed" && outcome.firstSequence)).toEqual([1, 1, 3]);
      const blocks = await collectAll(ledger);
      expectOrdered(blocks);
      expect(contents(flat(blocks))).toEqual(["a", "b", "c", "d"]);
    });

    test("an append with isAtomic commits all batches, or none if one is rejected", async () => {
      const first = await openTopic(ledger);
      const second = await openTopic(ledger, otherName);
      const toBoth = (text: string) => [batch(first, [event(text)]), batch(second, [event(text)], otherName)];
      const committed = await ledger.append(toBoth("a"), signal, { isAtomic: true });
      expect(committed).toMatchObject([{ firstSequence: 1 }, { firstSequence: 1 }]);
      await ledger.closeTopic(otherName, signal);
      await expect(ledger.append(toBoth("b"), signal, { isAtomic: true })).rejects.toMatchObject({ code: 200202 });
      expect(await appendTo(ledger, first, "c")).toMatchObject([{ firstSequence: 2 }]);
      expect(contents(flat(await collectAll(ledger)))).toEqual(["a", "a", "c"]);
    });

    test("rejected batches do not affect committed ones, and take no sequence numbers", async () => {
      const first = await openTopic(ledger);
      const second = await openTopic(ledger, otherName);
      await ledger.closeTopic(otherName, signal);
      const outcomes = await ledger.append(
        [
          batch(unknownAddress, [event("x")]),
          batch(first, [event("a")]),
          batch(second, [event("y")], otherName),
          batch(first, []),
          batch(first, [event("b")]),
        ],
        signal,
      );
      const results = outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason : "ok"));
      expect(results).toEqual(["unknown-topic", "ok", "closed-topic", "empty-batch", "ok"]);
      const blocks = await collectAll(ledger);
      expectOrdered(blocks);
      expect(contents(flat(blocks))).toEqual(["a", "b"]);
    });

    test("one append can open topics, and publish to these and to other topics; opening an open topic adds no entry", async () => {
      const known = await openTopic(ledger);
      const append = (text: string, opening?: TopicOpening): Promise<readonly BatchOutcome[]> => {
        const other = batch(opening?.address ?? known, [event(text)], otherName);
        return ledger.append([batch(known, [event(`${text} known`)]), { ...other, opening }], signal);
      };
      const opening = await ledger.prepareOpening(otherName);
      const both = await Promise.all([append("first", opening), append("second", opening)]);
      expect(both.map(([, outcome]) => outcome)).toMatchObject([
        { status: "committed", firstSequence: 1 },
        { status: "committed", firstSequence: 2 },
      ]);
      const blocks = await collectAll(ledger);
      expectOrdered(blocks);
      expect(flat(blocks).filter(({ kind }) => kind === "topic-opened")).toMatchObject([{ name }, { name: otherName }]);
      expect(contents(flat(blocks))).toEqual(["first known", "first", "second known", "second"]);
      const opened = blocks.find(({ entries }) => entries.some((entry) => "name" in entry && entry.name === otherName));
      const kinds = opened?.entries.map(({ kind }) => kind); // The block may hold both appends.
      expect(kinds?.slice(0, 3)).toEqual(["topic-opened", "events-committed", "events-committed"]);
    });

    test("returns an outcome for an append that has only rejected batches", async () => {
      const outcomes = await appendTo(ledger, unknownAddress, "x");
      expect(outcomes).toEqual([{ status: "rejected", reason: "unknown-topic" }]);
    });

    test("a reopened topic continues its sequence", async () => {
      const address = await openTopic(ledger);
      await appendTo(ledger, address, "a", "b");
      await ledger.closeTopic(name, signal);
      await ledger.openTopic(name, signal);
      const [outcome] = await appendTo(ledger, address, "c");
      expect(outcome).toMatchObject({ status: "committed", firstSequence: 3 });
    });

    test("follow returns the blocks after any given block, always including the newest", async () => {
      const address = await openTopic(ledger);
      const places: number[] = [];
      for (let index = 0; index < 6; index += 1) {
        const [outcome] = await appendTo(ledger, address, `${index}`);
        if (outcome?.status === "committed") places.push(outcome.blockNumber);
      }
      const all = await collectAll(ledger);
      expect(contents(flat(all))).toEqual(["0", "1", "2", "3", "4", "5"]);
      const middle = places[2] ?? 0;
      expect(flat(await collectAll(ledger, middle))).toEqual(flat(all.filter(({ number }) => number > middle)));
      const head = await ledger.finalBlockNumber(signal);
      expect((await collectAll(ledger, head - 1)).map(({ number }) => number)).toEqual([head]);
    });

    test("follow returns each event exactly once while events are appended", async () => {
      const address = await openTopic(ledger);
      const total = 60;
      const seen = collect(ledger, -1, (blocks) => contents(flat(blocks)).length >= total);
      const late = collect(
        ledger,
        await ledger.finalBlockNumber(signal),
        (blocks) => contents(flat(blocks)).length >= total,
      );
      const work = async (writer: number): Promise<void> => {
        for (let index = 0; index < total / 3; index += 1) {
          await appendTo(ledger, address, `${writer}-${index}`);
        }
      };
      await Promise.all([work(0), work(1), work(2)]);
      for (const blocks of [await seen, await late]) {
        expectOrdered(blocks);
        const texts = contents(flat(blocks));
        expect(texts).toHaveLength(total);
        expect(new Set(texts).size).toBe(total);
      }
    });

    test("reports the exact name of a stranger's topic, even if it looks like the name of another topic", async () => {
      await openTopic(ledger);
      await harness.stranger.open(`\uFEFF${name}`);
      const opened = flat(await collectAll(ledger)).flatMap((entry) =>
        entry.kind === "topic-opened" ? entry.name : [],
      );
      expect(opened).toEqual([name, `\uFEFF${name}`]);
    });

    test("findBlockHash returns the same hash as follow for a final block, and undefined for a block beyond the head", async () => {
      await openTopic(ledger);
      const last = (await collectAll(ledger)).at(-1);
      expect(await ledger.findBlockHash(last?.number ?? -1, signal)).toBe(last?.hash);
      expect(await ledger.findBlockHash((await ledger.finalBlockNumber(signal)) + 1_000, signal)).toBeUndefined();
    });

    test("follow ends when its signal aborts, even while it waits", async () => {
      const controller = new AbortController();
      const head = await ledger.finalBlockNumber(signal);
      const iterator = ledger.follow(await refOf(ledger, head), controller.signal)[Symbol.asyncIterator]();
      const next = iterator.next();
      controller.abort();
      expect((await next).done).toBe(true);
      const aborted = ledger.follow(undefined, AbortSignal.abort())[Symbol.asyncIterator]();
      expect((await aborted.next()).done).toBe(true);
    });

    test("follow returns the entries of foreign accounts, and marks malformed batches", async () => {
      const address = await openTopic(ledger);
      await harness.stranger.open("stranger/topic");
      const good = encodeEvents([event("good")]);
      await harness.stranger.publish([
        { address, count: 2, events: good },
        { address, count: 3, events: Buffer.from("not a batch") },
        { address, count: 100, events: good },
        { address, count: 1, events: good },
      ]);
      expect(await appendTo(ledger, address, "after")).toMatchObject([{ firstSequence: 7 }]);
      const blocks = await collectAll(ledger);
      expectOrdered(blocks);
      const entries = flat(blocks);
      const opened = entries.filter((entry) => entry.kind === "topic-opened");
      expect(opened.map((entry) => entry.name)).toEqual([name, "stranger/topic"]);
      expect(new Set(opened.map((entry) => entry.sender)).size).toBe(2);
      const malformed = entries.filter((entry) => entry.kind === "events-malformed");
      expect(malformed.map(({ publisher }) => publisher)).toEqual(Array(2).fill(opened[1]?.sender));
      expect(malformed.map(({ firstSequence, count }) => `${count} from ${firstSequence}`)).toEqual([
        "2 from 1",
        "3 from 3",
      ]);
      expect(contents(entries)).toEqual(["good", "after"]);
    });

    test("a ledger that starts later on the same chain follows all its blocks, from the beginning or the middle", async () => {
      const address = await openTopic(ledger);
      await appendTo(ledger, address, "a");
      const middle = await ledger.finalBlockNumber(signal);
      await appendTo(ledger, address, "b");
      const before = await collectAll(ledger);
      await ledger.stop();
      ledger = harness.createLedger();
      await ledger.start();
      const [outcome] = await appendTo(ledger, address, "c");
      expect(outcome).toMatchObject({ status: "committed", firstSequence: 3 });
      const all = await collectAll(ledger);
      expect(flat(all).slice(0, -1)).toEqual(flat(before));
      expect(contents(flat(await collectAll(ledger, middle)))).toEqual(["b", "c"]);
    });

    test("stopping completes calls in progress and ends followers", async () => {
      const address = await openTopic(ledger);
      const following = collect(ledger, -1, () => false);
      const appends = Array.from({ length: 10 }, (_, index) => appendTo(ledger, address, `${index}`));
      const answers = Promise.all(appends);
      await ledger.stop();
      expect((await answers).every(([outcome]) => outcome?.status === "committed")).toBe(true);
      await following;
      await expect(appendTo(ledger, address, "late")).rejects.toMatchObject({ code: 200205 });
    });

    test("commits a batch of 1,000 events of 256 bytes unchanged", async () => {
      const address = await openTopic(ledger);
      const events = Array.from({ length: 1000 }, (_, index) => ({
        content: Buffer.alloc(256, index % 251),
        extensions: [],
      }));
      const [outcome] = await ledger.append([batch(address, events)], signal);
      expect(outcome).toMatchObject({ status: "committed", firstSequence: 1 });
      const entry = flat(await collectAll(ledger)).find(({ kind }) => kind === "events-committed");
      if (entry?.kind !== "events-committed") throw new Error("not committed");
      expect(Buffer.from(encodeEvents(events)).equals(entry.events)).toBe(true);
    });

    test("a call that is aborted before it begins changes nothing", async () => {
      const address = await openTopic(ledger);
      const head = await ledger.finalBlockNumber(signal);
      await expect(ledger.append([batch(address, [event("x")])], AbortSignal.abort())).rejects.toMatchObject({
        code: 200202,
      });
      expect(await ledger.finalBlockNumber(signal)).toBe(head);
    });
  });
}
