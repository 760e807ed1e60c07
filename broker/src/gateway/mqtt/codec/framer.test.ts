import { describe, expect, it } from "vitest";
import { type Frame, Framer } from "./framer.ts";
import { MALFORMED_PACKET, PACKET_TOO_LARGE, PacketError } from "./packet-error.ts";

const ping = Buffer.from("c000", "hex");
const publish = Buffer.concat([Buffer.from("308201", "hex"), Buffer.alloc(130, 7)]);

function collect(framer: Framer, chunks: readonly Buffer[]): Frame[] {
  const frames: Frame[] = [];
  for (const chunk of chunks) framer.push(chunk, (frame) => frames.push(frame) > 0);
  return frames;
}

const toHex = ({ type, flags, body }: Frame): string => `${type} ${flags} ${body.toString("hex")}`;

describe("cutting bytes into packets", () => {
  const bytes = Buffer.concat([ping, publish, ping, publish]);

  it("gives the same packets for every cut into two chunks", () => {
    const whole = collect(new Framer(1000), [bytes]);
    expect(whole.map(({ type, flags, body }) => [type, flags, body.length])).toEqual([
      [12, 0, 0],
      [3, 0, 130],
      [12, 0, 0],
      [3, 0, 130],
    ]);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const frames = collect(new Framer(1000), [bytes.subarray(0, cut), bytes.subarray(cut)]);
      expect(frames.map(toHex)).toEqual(whole.map(toHex));
    }
  });

  it("gives the same packets if the bytes come one by one, and keeps nothing afterwards", () => {
    const framer = new Framer(1000);
    const frames = collect(
      framer,
      Array.from(bytes, (byte) => Buffer.of(byte)),
    );
    expect(frames).toEqual(collect(new Framer(1000), [bytes]));
    expect(framer.pendingBytes).toBe(0);
  });

  it("stops when take returns false, and resume continues with the next packet", () => {
    const framer = new Framer(1000);
    const types: number[] = [];
    const takeOne = ({ type }: Frame): boolean => {
      types.push(type);
      return false;
    };
    framer.push(bytes, takeOne);
    expect(types).toEqual([12]);
    framer.resume(takeOne);
    expect(types).toEqual([12, 3]);
    framer.push(ping, () => true);
    expect(framer.pendingBytes).toBe(0);
  });

  it("joins a header and 57,344 chunks of one byte to one packet", () => {
    const framer = new Framer(2 ** 20);
    const header = Buffer.from("3080c003", "hex"); // 57,344 bytes follow
    let given: Frame | undefined;
    const take = (frame: Frame): boolean => {
      given = frame;
      return true;
    };
    framer.push(header, take);
    for (let count = 0; count < 57_343; count++) framer.push(Buffer.of(1), take);
    expect(given).toBeUndefined();
    framer.push(Buffer.of(1), take);
    expect(given?.body.length).toBe(57_344);
  });

  it("holds at most twice the received bytes of a packet, and no more than the packet needs", () => {
    const framer = new Framer(2 ** 20);
    framer.push(Buffer.from("3080c003", "hex"), () => true); // 57,344 bytes follow
    for (let count = 4; count < 57_347; ) {
      framer.push(Buffer.of(1), () => true);
      count += 1;
      if (framer.heldBytes > Math.min(2 * count, 57_348)) expect.fail(`${framer.heldBytes} bytes held for ${count}`);
    }
    expect(framer.pendingBytes).toBe(57_347);
    expect(framer.heldBytes).toBe(57_348);
  });

  it("accepts larger packets once the limit is raised", () => {
    const framer = new Framer(100);
    expect(() => framer.push(publish, () => true)).toThrow(/at most 100/);
    const widened = new Framer(100);
    const types: number[] = [];
    widened.push(Buffer.concat([ping, publish]), ({ type }) => {
      widened.allow(1000);
      return types.push(type) > 0;
    });
    expect(types).toEqual([12, 3]);
  });
});

function reasonOf(hex: string): number {
  try {
    new Framer(1000).push(Buffer.from(hex, "hex"), () => true);
  } catch (error) {
    if (error instanceof PacketError) return error.reasonCode;
    throw error;
  }
  return 0;
}

describe("the fixed header of a packet", () => {
  it.each([
    ["a length of five bytes", "30ffffffff01", MALFORMED_PACKET],
    ["a length with a byte that it does not need", "308000", MALFORMED_PACKET],
    ["a packet of 1,001 bytes at a limit of 1,000", "30e607", PACKET_TOO_LARGE],
    ["a packet of 1,000 bytes at a limit of 1,000", "30e507", 0],
    ["the longest length, before its body arrives", "30ffffff7f", PACKET_TOO_LARGE],
  ])("gives the reason code for %s", (_, hex, reasonCode) => {
    expect(reasonOf(hex)).toBe(reasonCode);
  });
});
