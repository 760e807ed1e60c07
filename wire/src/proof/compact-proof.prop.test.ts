import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type BatchEvent, encodeEvents } from "../batch/encode-events.ts";
import { merklePath } from "../batch/merkle.ts";
import { findCheckedBatch, findCompactProof, formatCompactProof, verifyCompactProof } from "./compact-proof.ts";
import { publishedLog } from "./testing/published-log.ts";

const text = fc.string({ unit: "grapheme", maxLength: 8 });
const event = fc.record({
  content: fc.uint8Array({ maxLength: 40 }),
  extensions: fc.array(fc.tuple(text, text), { maxLength: 3 }),
});
const claim = fc.array(event, { minLength: 1, maxLength: 12 }).chain((events) =>
  fc.nat({ max: events.length - 1 }).map((index): Claim => {
    const path = merklePath(encodeEvents(events), index);
    const proof = formatCompactProof({ index, count: events.length, path });
    return { proof, event: events[index] ?? { content: new Uint8Array(), extensions: [] }, log: publishedLog(events) };
  }),
);

interface Claim {
  readonly proof: string;
  readonly event: BatchEvent;
  readonly log: ReturnType<typeof publishedLog>;
}

type Change = (honest: Claim, at: number, to: number) => Claim;

const isVerified = ({ proof, event, log }: Claim): boolean =>
  verifyCompactProof({ proof, event, batch: findCheckedBatch(log) });

const changes: Readonly<Record<string, Change>> = {
  "its index": (honest, at) => withNumbers(honest, { index: at }),
  "its count": (honest, at) => withNumbers(honest, { count: at + 1 }),
  "a character of its text": (honest, at, to) => ({
    ...honest,
    proof: replaceAt(honest.proof, at, String.fromCharCode(33 + (to % 94))),
  }),
  "a byte of the content": ({ event, ...honest }, at, to) => ({
    ...honest,
    event: { ...event, content: event.content.map((byte, index) => (index === at % 41 ? to : byte)) },
  }),
  "an added extension": ({ event, ...honest }) => ({
    ...honest,
    event: { ...event, extensions: [...event.extensions, ["svc-n", "1"] as const] },
  }),
  "a removed extension": ({ event, ...honest }) => ({
    ...honest,
    event: { ...event, extensions: event.extensions.slice(1) },
  }),
  "a digit of the log's data": ({ log, ...honest }, at, to) => ({
    ...honest,
    log: { ...log, data: `0x${replaceAt(log.data.slice(2), at, (to % 16).toString(16))}` },
  }),
  // The log's other (EVM) topics hold the topic's address, the first sequence and the sender. The proof covers none of the three.
  "a digit of the log's first topic": ({ log, ...honest }, at, to) => {
    const digits = replaceAt((log.topics[0] ?? "").slice(2), at, (to % 16).toString(16));
    return { ...honest, log: { ...log, topics: log.topics.with(0, `0x${digits}`) } };
  },
};

test("verifyCompactProof accepts an honest compact proof", () => {
  fc.assert(fc.property(claim, (honest) => isVerified(honest)));
});

test.each(Object.entries(changes))("verifyCompactProof refuses a compact proof after this change: %s", (_, change) => {
  fc.assert(
    fc.property(claim, fc.nat({ max: 5000 }), fc.nat({ max: 255 }), (honest, at, to) => {
      const changed = change(honest, at, to);
      fc.pre(JSON.stringify(plain(changed)) !== JSON.stringify(plain(honest)));
      expect(isVerified(changed)).toBe(false);
    }),
    { numRuns: 300 },
  );
});

function withNumbers(honest: Claim, change: { readonly index?: number; readonly count?: number }): Claim {
  const known = findCompactProof(honest.proof);
  if (known === undefined) throw new Error("the honest proof is not a well-formed compact proof");
  return { ...honest, proof: formatCompactProof({ ...known, ...change }) };
}

function replaceAt(text: string, at: number, character: string): string {
  const index = at % text.length;
  return text.slice(0, index) + character + text.slice(index + 1);
}

/** A claim with its bytes as arrays, for comparison as JSON. */
function plain({ event, ...claim }: Claim): unknown {
  return { ...claim, extensions: event.extensions, content: [...event.content] };
}
