import fc from "fast-check";
import { expect, it } from "vitest";
import { anyCharacter } from "../../../lib/testing/any-character.ts";
import { encodeFrame } from "./encode-frame.ts";
import { escapeHeader, unescapeHeader } from "./escapes.ts";
import { type ClientFrame, type Headers, versions } from "./frame.ts";
import { FrameError } from "./frame-error.ts";
import { FrameParser } from "./frame-parser.ts";

/** In the long run each round is 50,000 mutated inputs, so that twenty make a million. */
const mutatedInputs =
  process.env["CHECKS_ROUNDS"] === undefined ? 10_000 : 50_000 * Number(process.env["CHECKS_ROUNDS"]);

const limits = { headBytesMax: 4_000, headersMax: 50, bodyBytesMax: 1_000 };

/** Text with characters that have to be escaped. */
const text = fc.string({
  unit: fc.constantFrom(":", "\n", "\r", "\\", "n", "c", "r", " ", "a", "\u00e4", "\u{1f600}"),
});
const name = text.filter((found) => found !== "" && found !== "content-length");
const headers = fc.array(fc.tuple(name, text), { maxLength: 10 });

function read(chunks: readonly Buffer[], version: (typeof versions)[number]): readonly ClientFrame[] {
  const parser = new FrameParser(limits);
  parser.use(version);
  const frames: ClientFrame[] = [];
  for (const chunk of chunks) parser.push(chunk, (frame) => frames.push(frame) > 0);
  return frames;
}

function cut(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

/** The bytes of a client's frame, made with the encoder of server frames. */
function toClientBytes(fields: Headers, body: Buffer): Buffer {
  const bytes = encodeFrame({ command: "ERROR", headers: fields, body }, "1.2");
  return Buffer.concat([Buffer.from("SEND"), bytes.subarray("ERROR".length)]);
}

it("reads the frames that it wrote, however their bytes are cut", () => {
  const body = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(fc.array(fc.tuple(headers, body), { maxLength: 5 }), fc.array(fc.nat(2_000)), (frames, places) => {
      const sent = frames.map(([fields, bytes]): [Headers, Buffer] => [
        [["content-length", String(bytes.length)], ...fields],
        Buffer.from(bytes),
      ]);
      const bytes = Buffer.concat(sent.map(([fields, content]) => toClientBytes(fields, content)));
      const found = read(cut(bytes, places), "1.2");
      expect(found.map((frame) => [frame.headers, Buffer.from(frame.body)])).toEqual(sent);
    }),
  );
});

it("unescapes what it escaped, and puts no delimiter into a header", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom(...versions),
      fc.boolean(),
      (found, version, isName) => {
        const escaped = escapeHeader(found, { version, isName });
        if (escaped === undefined) return;
        expect(escaped).not.toMatch(/[\0\r\n]/);
        if (version !== "1.0") expect(escaped).not.toContain(":");
        expect(unescapeHeader(escaped, version)).toBe(found);
      },
    ),
  );
});

/** Limits that many mutated inputs exceed. */
const small = { headBytesMax: 60, headersMax: 3, bodyBytesMax: 20 };

/** Fails if a frame exceeds the limits. */
function checkFrame({ command, headers, body }: ClientFrame): void {
  const bodyMax = command === "SEND" ? small.bodyBytesMax : small.headBytesMax; // 1.0 ignores the bodies of other frames
  const headBytes = headers.reduce((sum, pair) => sum + Buffer.byteLength(pair.join("")), command.length);
  if (body.length > bodyMax) expect.fail(`a body of ${body.length} bytes`);
  if (headers.length > small.headersMax || headBytes > small.headBytesMax) expect.fail(`${headBytes} bytes of headers`);
}

const whole = Buffer.from(
  "CONNECT\naccept-version:1.2\n\n\0\nSEND\ndestination:a\\cb\ncontent-length:3\nreceipt:1\n\nx\0y\0\r\nSUBSCRIBE\r\nid:0\r\n\r\n\0",
);

/** Replaces some bytes by others, or repeats a part. */
const mutation = fc.record({
  at: fc.nat(whole.length - 1),
  length: fc.nat(8),
  put: fc.oneof(
    fc.uint8Array({ maxLength: 8 }),
    fc.tuple(fc.nat(whole.length), fc.nat(60)).map(([from, length]) => whole.subarray(from, from + length)),
  ),
});

it(
  "turns any mutated bytes into frames or a FrameError, and holds no more than its limits",
  () => {
    const outcomes = { frames: 0, refusals: 0 };
    const arbitrary = [fc.array(mutation, { maxLength: 4 }), fc.array(fc.nat(whole.length), { maxLength: 3 })] as const;
    fc.assert(
      fc.property(...arbitrary, fc.constantFrom(...versions), (mutations, places, version) => {
        let bytes = whole;
        for (const { at, length, put } of mutations) {
          bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + length)]);
        }
        const parser = new FrameParser(small);
        parser.use(version);
        try {
          for (const chunk of cut(bytes, places)) {
            parser.push(chunk, (frame) => {
              checkFrame(frame);
              outcomes.frames += 1;
              return true;
            });
            // One byte more shows that a head or body is too long.
            if (parser.heldBytes > small.headBytesMax + 1) expect.fail(`${parser.heldBytes} bytes are held`);
          }
        } catch (error) {
          if (!(error instanceof FrameError)) throw error;
          outcomes.refusals += 1;
        }
      }),
      { numRuns: mutatedInputs },
    );
    expect(Math.min(outcomes.frames, outcomes.refusals)).toBeGreaterThan(mutatedInputs / 10);
  },
  60_000 + mutatedInputs,
);
