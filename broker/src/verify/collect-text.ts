import { AnswerTooLong } from "./unverifiable.ts";

/** Longest answer to read if the caller names no other limit: the same as for a broker that reads a node's answer. */
export const textBytesMaxDefault = 67_108_864;

/** Collects UTF-8 text that arrives in pieces. The sender may never end. @throws AnswerTooLong. */
export async function collectText(
  source: AsyncIterable<Uint8Array>,
  { name, bytesMax = textBytesMaxDefault }: { readonly name: string; readonly bytesMax?: number | undefined },
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new AnswerTooLong(`${name} returned more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
