import fc from "fast-check";
import { expect, test } from "vitest";
import { JsonFrames } from "./json-frames.ts";

test("returns whole objects, however the stream is split and whatever separates them", () => {
  const message = fc.record({ id: fc.nat(), result: fc.jsonValue() });
  const between = fc.constantFrom("", "\n", " \r\n", "\0");
  fc.assert(
    fc.property(fc.array(message), between, fc.array(fc.nat()), (messages, separator, cuts) => {
      const texts = messages.map((value) => JSON.stringify(value));
      const stream = Buffer.from(texts.map((text) => text + separator).join(""));
      const frames = new JsonFrames(1_000_000);
      const places = [0, ...cuts.map((cut) => cut % (stream.length + 1)), stream.length].toSorted((a, b) => a - b);
      const read = places.flatMap((place, index) => frames.push(stream.subarray(place, places[index + 1])));
      expect(read).toEqual(texts);
    }),
  );
});

test("throws RangeError once a message exceeds the limit, before it is complete", () => {
  const frames = new JsonFrames(10);
  expect(frames.push(Buffer.from('{"a":1}{'))).toEqual(['{"a":1}']);
  expect(() => frames.push(Buffer.from('"a":"0123456789'))).toThrow(RangeError);
});
