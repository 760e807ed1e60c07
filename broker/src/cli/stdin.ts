import { type CliIo, UsageError } from "./io.ts";

/**
 * Maximum number of bytes of a line of stdin, of all of stdin if a command reads it at once, and of `stele bench --bytes`. No broker accepts longer content.
 */
export const contentBytesMax = 8 * 1024 * 1024;
const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** Yields the lines of stdin as bytes: all lines that end in the same chunk together. @throws UsageError for a line that is too long. */
export async function* lineGroups({ stdin }: Pick<CliIo, "stdin">): AsyncGenerator<readonly Uint8Array[]> {
  let rest: Uint8Array[] = [];
  let restBytes = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk);
    const end = bytes.lastIndexOf(lineFeed) + 1;
    const whole = bytes.subarray(0, end);
    const lines = end === 0 ? [] : splitLines(Buffer.concat([...rest, whole]));
    if (end > 0) [rest, restBytes] = [[], 0];
    rest.push(bytes.subarray(end));
    restBytes += bytes.length - end;
    if (restBytes > contentBytesMax) throw new UsageError(`a line of stdin has over ${contentBytesMax} bytes`);
    if (lines.length > 0) yield lines;
  }
  if (restBytes > 0) yield [withoutReturn(Buffer.concat(rest))];
}

/** All bytes of stdin. @throws UsageError if they are too many. */
export async function readAll({ stdin }: Pick<CliIo, "stdin">): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    bytes += chunk.length;
    if (bytes > contentBytesMax) throw new UsageError(`stdin has over ${contentBytesMax} bytes`);
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

/** Splits bytes that end with a line feed. */
function splitLines(bytes: Uint8Array): readonly Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(lineFeed, start);
    lines.push(withoutReturn(bytes.subarray(start, end)));
    start = end + 1;
  }
  return lines;
}

function withoutReturn(line: Uint8Array): Uint8Array {
  return line.at(-1) === carriageReturn ? line.subarray(0, -1) : line;
}
