/** The two running sums of a checksum, by sqlite.org/fileformat2.html#walcksm. */
export type Sum = readonly [number, number];

/** Length of the header of a write-ahead log, in bytes. */
export const headerBytes = 32;
/** Length of the header of a frame, before its page, in bytes. */
export const frameHeaderBytes = 24;
/** First field of a header; its last bit is 1 if the checksums use big-endian words. */
const magic = 0x377f0682;
const version = 3_007_000;

export function isBigEndian(header: Buffer): boolean {
  return (header.readUInt32BE(0) & 1) === 1;
}

/** Whether a header has the right magic number and checksum. */
export function isHeader(header: Buffer): boolean {
  const sum = checksum(header.subarray(0, 24), [0, 0], isBigEndian(header));
  return header.readUInt32BE(0) >>> 1 === magic >>> 1 && isSame(sum, header, 24);
}

/**
 * Computes the lost header of a log from the log's first frame. The frame's checksum continues the header's, and each step of the sum
 * can be undone, which gives the 64 bits of the header's checksum. Half of them determine the only field that is not known from elsewhere, the number
 * of the checkpoint; the other half verify the frame. Returns undefined if no header fits the frame.
 */
export function headerBefore(frame: Buffer): Buffer | undefined {
  if (frame.length <= frameHeaderBytes) return undefined;
  return [false, true].map((isBig) => headerOf(frame, isBig)).find(isHeader);
}

function headerOf(frame: Buffer, isBig: boolean): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE(isBig ? magic + 1 : magic, 0);
  header.writeUInt32BE(version, 4);
  header.writeUInt32BE(frame.length - frameHeaderBytes, 8);
  frame.copy(header, 16, 8, 16);
  const page = frame.subarray(frameHeaderBytes);
  const sum = checksumBefore(frame.subarray(0, 8), checksumBefore(page, sumOf(frame), isBig), isBig);
  header.writeUInt32BE(sum[0], 24);
  header.writeUInt32BE(sum[1], 28);
  const [, before] = checksum(header.subarray(0, 8), [0, 0], isBig);
  const [one, two] = checksumBefore(header.subarray(16, 24), sum, isBig);
  const checkpoint = (two - before - one) >>> 0;
  if (isBig) header.writeUInt32BE(checkpoint, 12);
  else header.writeUInt32LE(checkpoint, 12);
  return header;
}

/** The checksum in a frame's header: over the log's header and all frames up to this one. */
export function sumOf(frame: Buffer): Sum {
  return [frame.readUInt32BE(16), frame.readUInt32BE(20)];
}

export function isSame([first, second]: Sum, bytes: Buffer, at: number): boolean {
  return bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second;
}

/** The checksum after `bytes`, whose length is a multiple of 8. */
export function checksum(bytes: Buffer, [first, second]: Sum, isBig: boolean): Sum {
  let one = first;
  let two = second;
  for (let at = 0; at < bytes.length; at += 8) {
    one = (one + wordAt(bytes, at, isBig) + two) >>> 0;
    two = (two + wordAt(bytes, at + 4, isBig) + one) >>> 0;
  }
  return [one, two];
}

/** The checksum before `bytes`, from the one after them. */
function checksumBefore(bytes: Buffer, [first, second]: Sum, isBig: boolean): Sum {
  let one = first;
  let two = second;
  for (let at = bytes.length - 8; at >= 0; at -= 8) {
    two = (two - wordAt(bytes, at + 4, isBig) - one) >>> 0;
    one = (one - wordAt(bytes, at, isBig) - two) >>> 0;
  }
  return [one, two];
}

function wordAt(bytes: Buffer, at: number, isBig: boolean): number {
  return isBig ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at);
}
