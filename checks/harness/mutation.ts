import type { Random } from "./random.ts";

/** Replaces, inserts or removes one byte, truncates the bytes, or repeats their start. `byte` is the value to write. */
export function mutate(bytes: Buffer, random: Random, byte: number): Buffer {
  const at = random.below(bytes.length);
  const put = Buffer.of(byte);
  switch (random.below(5)) {
    case 0:
      return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + 1)]);
    case 1:
      return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at)]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
    case 3:
      return bytes.subarray(0, at);
    default:
      return Buffer.concat([bytes.subarray(0, at), bytes]);
  }
}
