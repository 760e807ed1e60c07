import { findBytes, toHexText } from "@stele/eth";
import { describe, expect, test } from "vitest";
import { encodeEvents } from "../batch/encode-events.ts";
import { merklePath } from "../batch/merkle.ts";
import { type Proof, parseProof } from "./proof-schema.ts";
import { createDice, type ProofSample, samples } from "./testing/samples.ts";
import { verifyProof } from "./verify-proof.ts";

const changesTried = 1000;
const sample = samples.at(-1);
if (sample === undefined) throw new Error("no samples");
const { proof, blockHash, registry } = sample;

const bytesOf = (text: string): Uint8Array => findBytes(text) ?? new Uint8Array();
const check = (changed: unknown, trusted = blockHash) => verifyProof(changed, trusted, { expectedRegistry: registry });

describe("verifyProof, with a valid proof and with changed ones", () => {
  test.each(samples)(
    "verifyProof accepts the proof of $what and returns the event",
    ({ proof, blockHash, registry }) => {
      const result = verifyProof(proof, blockHash, { expectedRegistry: registry });
      const [, sequence, blockNumber] = proof.event.eventId.split("-").map(Number);
      expect(result).toMatchObject({
        status: "verified",
        event: { topic: "orders/eu", eventId: proof.event.eventId, sequence, blockNumber, registry },
      });
      expect(verifyProof(proof, blockHash.toUpperCase().replace("0X", "0x"))).toEqual(result);
    },
  );

  test.each(samples)("verifyProof refutes the proof of $what after any change of one byte", (sample) => {
    const dice = createDice(7);
    const fields = pathsIn(sample.proof);
    for (let count = 0; count < changesTried; count += 1) {
      const changed = changeByte(sample.proof, fields, dice);
      const result = verifyProof(changed, sample.blockHash);
      expect(result, JSON.stringify(changed)).toMatchObject({ status: "refuted" });
    }
  });

  test.each(samples)(
    "parseProof or verifyProof refuses the proof of $what after one character of its text was changed",
    (sample) => {
      const dice = createDice(11);
      const text = JSON.stringify(sample.proof);
      for (let count = 0; count < changesTried; count += 1) {
        const at = dice(text.length);
        const character = String.fromCharCode(dice(128));
        if (character === text[at]) continue;
        expectRefutedText(text.slice(0, at) + character + text.slice(at + 1), sample);
      }
    },
  );

  test.each(samples)(
    "parseProof or verifyProof refuses the proof of $what after one character of its text was removed or added",
    (sample) => {
      const text = JSON.stringify(sample.proof);
      const dice = createDice(13);
      for (let count = 0; count < changesTried; count += 1) {
        const at = dice(text.length);
        expectRefutedText(text.slice(0, at) + text.slice(at + 1), sample);
        const more = String.fromCharCode(33 + dice(94));
        const longer = text.slice(0, at) + more + text.slice(at);
        expectRefutedText(longer, sample);
      }
    },
  );
});

test.each(samples)("verifyProof refutes the proof of $what with any other index", ({ proof, blockHash }) => {
  for (const [field, place] of [
    ["batch", "index"],
    ["receipt", "transactionIndex"],
    ["receipt", "logPlace"],
  ] as const) {
    const was: number = valueAt(proof, [field, place]) as number; // A path in the proof's JSON.
    for (let other = 0; other <= 300; other += 1) {
      const changed = replaceAt(proof, [field, place], other);
      expect(verifyProof(changed, blockHash).status).toBe(other === was ? "verified" : "refuted");
    }
  }
});

describe("verifyProof", () => {
  const cases: readonly (readonly [string, string, unknown])[] = [
    ["undefined instead of a proof", "form", undefined],
    ["another version", "form", { ...proof, version: 2 }],
    ["an added field", "form", { ...proof, note: "" }],
    ["digits in upper case", "form", { ...proof, header: proof.header.replace("f", "F") }],
    ["half a byte", "form", { ...proof, header: `${proof.header}0` }],
    ["half of a surrogate pair", "form", { ...proof, event: { ...proof.event, topic: "\ud800" } }],
    ["an index beyond 32 bits", "form", { ...proof, batch: { ...proof.batch, index: 2 ** 32 } }],
    ["no header", "header", { ...proof, header: "0x" }],
    ["another transaction", "receipt", { ...proof, receipt: { ...proof.receipt, transactionIndex: 15 } }],
    ["a missing node", "receipt", { ...proof, receipt: { ...proof.receipt, nodes: proof.receipt.nodes.slice(0, -1) } }],
    ["an added node", "receipt", { ...proof, receipt: { ...proof.receipt, nodes: [...proof.receipt.nodes, "0xc0"] } }],
    ["a log index that does not exist", "log", { ...proof, receipt: { ...proof.receipt, logPlace: 9 } }],
    ["an identical earlier batch", "event", { ...proof, receipt: { ...proof.receipt, logPlace: 1 } }],
    ["another batch", "batch", { ...proof, receipt: { ...proof.receipt, logPlace: 0 } }],
    ["another index in the batch", "batch", { ...proof, batch: { ...proof.batch, index: 2 } }],
    ["an index outside the batch", "batch", { ...proof, batch: { ...proof.batch, index: 5 } }],
    ["a path that is too short", "batch", { ...proof, batch: { ...proof.batch, path: proof.batch.path.slice(1) } }],
    ["another content", "batch", { ...proof, event: { ...proof.event, content: "0x00" } }],
    ["a missing extension", "batch", { ...proof, event: { ...proof.event, extensions: [] } }],
    [
      "another sequence",
      "event",
      { ...proof, event: { ...proof.event, eventId: proof.event.eventId.replace(/-\d+-/, "-1-") } },
    ],
    ["another topic", "event", { ...proof, event: { ...proof.event, topic: "orders/us" } }],
    ["another registry", "topic", { ...proof, registry: `0x${"ab".repeat(20)}` }],
    ["another publisher", "publisher", { ...proof, publisher: `0x${"ab".repeat(20)}` }],
  ];

  test.each(cases)("verifyProof refutes %s", (_, step, changed) => {
    expect(check(changed)).toMatchObject({ status: "refuted", step, reason: expect.stringMatching(/./) });
  });

  test("verifyProof refutes an unexpected publisher", () => {
    const verified = check(proof);
    if (verified.status !== "verified") throw new Error(verified.reason);
    const { publisher } = verified.event;
    const other = `0x${"ab".repeat(20)}`;
    const checkWith = (expectedPublishers: readonly string[]) => verifyProof(proof, blockHash, { expectedPublishers });
    expect(checkWith([other, publisher.toUpperCase().replace("0X", "0x")])).toEqual(verified);
    for (const publishers of [[other], []]) {
      expect(checkWith(publishers)).toMatchObject({
        status: "refuted",
        step: "publisher",
        reason: expect.stringContaining(publisher),
      });
    }
  });

  test("verifyProof refutes a proof that names another registry, even if the caller expects no particular one", () => {
    const unbound = { ...proof, registry: `0x${"cd".repeat(20)}` };
    expect(verifyProof(unbound, blockHash)).toMatchObject({ status: "refuted", step: "topic" });
  });

  test("verifyProof refutes a proof against the hash of another block", () => {
    expect(check(proof, `0x${"11".repeat(32)}`)).toMatchObject({ status: "refuted", step: "header" });
    const other = samples[0];
    expect(check(proof, other?.blockHash)).toMatchObject({ status: "refuted", step: "header" });
  });

  test("verifyProof throws for a malformed block hash, registry or publisher", () => {
    expect(() => verifyProof(proof, "0x12")).toThrow(TypeError);
    expect(() => verifyProof(proof, blockHash, { expectedRegistry: "orders" })).toThrow(TypeError);
    expect(() => verifyProof(proof, blockHash, { expectedPublishers: ["orders"] })).toThrow(TypeError);
  });
});

describe("parseProof", () => {
  const text = JSON.stringify(proof);

  test("parseProof accepts white space between the tokens of a proof, but no other variation of its text", () => {
    expect(parseProof(text)).toEqual({ status: "proof", proof });
    expect(parseProof(`${JSON.stringify(proof, null, 2)}\n`)).toEqual({ status: "proof", proof });
    for (const other of [
      text.replace('"version":1', '"version":1.0'),
      text.replace('"orders/eu"', '"orders\\/eu"'),
      text.replace('{"version":1,', '{"version":1,"version":1,'),
      text.replace("svc-n", "svc\\u002dn"),
      text.replace('"version":1,', "").replace('"header"', '"version":1,"header"'),
    ]) {
      expect(other).not.toBe(text);
      expect(parseProof(other)).toEqual({ status: "malformed", reason: "not written as JSON.stringify writes it" });
    }
  });

  test("parseProof accepts a text of 8 MB whose strings contain quotes, escapes and white space", () => {
    const node = `0x${"ab".repeat(4_000_000)}` as const;
    const content = { ...proof.event, topic: 'a "b" \\ \\" c\\', extensions: [[" \n", '"'] as [string, string]] };
    const long = { ...proof, event: content, receipt: { ...proof.receipt, nodes: [node] } };
    for (const indent of [0, 2]) expect(parseProof(JSON.stringify(long, null, indent)).status).toBe("proof");
  });

  test.each(["", "null", "[]", "{", "{}", "\u0000\u0001", '"0x"'])("parseProof refuses %j", (garbage) => {
    expect(parseProof(garbage)).toMatchObject({ status: "malformed" });
  });
});

test("the path in a proof equals the result of merklePath", () => {
  const events = Array.from({ length: 5 }, (_, index) => ({
    content: new TextEncoder().encode(`of 16 ${index}`),
    extensions: index % 2 === 0 ? [] : ([["svc-n", String(index)]] as const),
  }));
  expect(proof.batch.path).toEqual(merklePath(encodeEvents(events), 3).map(toHexText));
});

function expectRefutedText(text: string, { blockHash }: ProofSample): void {
  const parsed = parseProof(text);
  const result = parsed.status === "proof" ? verifyProof(parsed.proof, blockHash).status : parsed.status;
  expect(result, text).not.toBe("verified");
}

type Path = readonly (string | number)[];

/** The paths of all values in a proof: hex texts, other texts, and numbers. */
function pathsIn(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([key, member]) => pathsIn(member, [...path, key]));
}

/** The proof with one byte of one of its fields changed; longer fields are chosen more often. */
function changeByte(proof: Proof, fields: readonly Path[], dice: (sides: number) => number): unknown {
  const sizes = fields.map((path) => sizeOf(valueAt(proof, path)));
  let at = dice(sizes.reduce((sum, size) => sum + size, 0));
  const field = sizes.findIndex((size) => {
    at -= size;
    return at < 0;
  });
  const path = fields[field] ?? [];
  return replaceAt(proof, path, changed(valueAt(proof, path), dice));
}

function sizeOf(value: unknown): number {
  return typeof value === "string" && value.startsWith("0x") ? Math.max(value.length / 2 - 1, 0) : String(value).length;
}

function changed(value: unknown, dice: (sides: number) => number): unknown {
  const flip = 1 + dice(255);
  if (typeof value === "number") return value ^ flip;
  const text = String(value);
  if (!text.startsWith("0x")) {
    const at = dice(text.length);
    return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ flip) + text.slice(at + 1);
  }
  const bytes = bytesOf(text).slice();
  const at = dice(bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ flip;
  return toHexText(bytes);
}

function valueAt(value: unknown, path: Path): unknown {
  // Paths come from the value itself.
  return path.reduce<unknown>((inner, key) => (inner as Readonly<Record<string | number, unknown>>)[key], value);
}

function replaceAt(value: unknown, [key, ...rest]: Path, replacement: unknown): unknown {
  if (key === undefined) return replacement;
  const members = value as Readonly<Record<string | number, unknown>>; // As above.
  const inner = replaceAt(members[key], rest, replacement);
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...members, [key]: inner };
}
