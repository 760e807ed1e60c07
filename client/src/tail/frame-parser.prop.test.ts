import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Frame, FrameParser } from "./frame-parser.ts";

const word = fc.string({ unit: fc.constantFrom("a", ":", " ", "é", "{", "\u{1f600}"), maxLength: 8 });
const frame = fc.record({
  id: fc.option(word, { nil: undefined }),
  name: fc.constantFrom("message", "resync", "x"),
  data: word,
});

function write({ id, name, data }: Frame, end: string): string {
  const event = name === "message" ? "" : `event: ${name}${end}`;
  return `:comment${end}${id === undefined ? "" : `id: ${id}${end}`}${event}data: ${data}${end}${end}`;
}

test("FrameParser reads the same frames however the stream is cut into chunks", () => {
  fc.assert(
    fc.property(fc.array(frame), fc.constantFrom("\n", "\r\n"), fc.array(fc.nat({ max: 40 })), (frames, end, cuts) => {
      const text = frames.map((one) => write(one, end)).join("");
      const parser = new FrameParser({ onRetryMs: () => {} });
      const read: Frame[] = [];
      let at = 0;
      for (const cut of [...cuts, text.length]) {
        read.push(...parser.push(text.slice(at, at + cut)));
        at += cut;
      }
      expect(read).toEqual(frames);
    }),
  );
});

test("FrameParser reads an id without data as a frame, ignores comments and reports retry", () => {
  const waits: number[] = [];
  const parser = new FrameParser({ onRetryMs: (ms) => waits.push(ms) });
  expect(parser.push("retry: 1734\nid: @7\n\n:\n\nid: @8\n")).toEqual([{ id: "@7", name: "message", data: "" }]);
  expect(parser.push("\n")).toEqual([{ id: "@8", name: "message", data: "" }]);
  expect(waits).toEqual([1734]);
});
