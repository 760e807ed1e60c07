import { MalformedError } from "@stele/eth";
import { describe, expect, test } from "vitest";
import { batchEventsMax, decodeEvents } from "./decode-events.ts";
import { encodeEvents } from "./encode-events.ts";

const bytes = (hex: string): Uint8Array => Buffer.from(hex.replaceAll(" ", ""), "hex");

describe("encodeEvents", () => {
  test.each([
    ["no events", [], "c0"],
    ["empty content", [{ content: bytes(""), extensions: [] }], "c3 c2 80 c0"],
    ["a byte that needs no header", [{ content: bytes("7f"), extensions: [] }], "c3 c2 7f c0"],
    ["a byte that needs a header", [{ content: bytes("80"), extensions: [] }], "c4 c3 81 80 c0"],
    ["extensions", [{ content: bytes("01"), extensions: [["k", "é"]] as const }], "c7 c6 01 c4 6b 82 c3a9"],
    [
      "a lone surrogate",
      [{ content: bytes("01"), extensions: [["k", "\ud800"]] as const }],
      "c8 c7 01 c5 6b 83 efbfbd",
    ],
  ])("encodeEvents encodes %s", (_, events, hex) => {
    expect(Buffer.from(encodeEvents(events)).toString("hex")).toBe(hex.replaceAll(" ", ""));
  });
});

describe("decodeEvents", () => {
  test.each([
    ["empty input", ""],
    ["a string", "80"],
    ["bytes after the list", "c0 00"],
    ["an event that is a string", "c1 01"],
    ["an event without extensions", "c2 c1 01"],
    ["an event of three items", "c4 c3 01 c0 01"],
    ["a content that is a list", "c3 c2 c0 c0"],
    ["extensions that are a string", "c3 c2 01 80"],
    ["a key without value", "c4 c3 01 c1 6b"],
    ["a value that is a list", "c5 c4 01 c2 6b c0"],
    ["an invalid UTF-8 value", "c6 c5 01 c3 6b 81 ff"],
    ["a surrogate in UTF-8", "c8 c7 01 c5 6b 83 eda080"],
    ["a single byte with a header", "c4 c3 81 01 c0"],
    ["a long form for a short length", "c5 c4 b8 01 80 c0"],
    ["a length with a leading zero", `f9 003d f83b b838${"80".repeat(56)} c0`],
    ["an item longer than its list", "c3 c2 85 c0"],
    ["a list longer than the input", "c9 c2 80 c0"],
    ["a length of five bytes", "fc 01 00 00 00 00"],
    ["a length near 2^32", "fb ff ff ff ff"],
    ["a length field that the input cuts off", "f9 01"],
  ])("decodeEvents refuses %s", (_, hex) => {
    expect(() => decodeEvents(bytes(hex))).toThrow(MalformedError);
  });

  test("decodeEvents refuses a million bytes that each begin a list longer than the input", () => {
    expect(() => decodeEvents(new Uint8Array(1_000_000).fill(0xfb))).toThrow(MalformedError);
  });
});

test("decodeEvents accepts 65,536 events in a batch and refuses one more", () => {
  const events = Array.from({ length: batchEventsMax + 1 }, () => ({ content: bytes(""), extensions: [] }));
  expect(decodeEvents(encodeEvents(events.slice(1)))).toHaveLength(batchEventsMax);
  expect(() => decodeEvents(encodeEvents(events))).toThrow("more than 65536 events");
});

test("decodeEvents returns contents that are views of the input, and texts that keep their byte order mark", () => {
  const encoded = encodeEvents([{ content: bytes("0102"), extensions: [["\ufeffk", ""]] }]);
  const [event] = decodeEvents(encoded);
  expect(event?.content.buffer).toBe(encoded.buffer);
  expect(event?.extensions).toEqual([["\ufeffk", ""]]);
});
