import { AnswerTooLong } from "./unverifiable.ts";

/** Longest text that is read where the caller names no other bound: as much as a broker reads of a node's answer. */
export const textBytesMaxDefault = 67_108_864;

/** UTF-8 text that comes in pieces. Whoever gives it may never end. @throws AnswerTooLong. */
export async function collectText(
  source: AsyncIterable<Uint8Array>,
  { name, bytesMax = textBytesMaxDefault }: { readonly name: string; readonly bytesMax?: number | undefined },
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new AnswerTooLong(`${name} gives more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
