import { type CliIo, UsageError } from "./io.ts";

/** Longest line of stdin, in characters. */
const lineCharactersMax = 8 * 1024 * 1024;

/** The lines of stdin, with those together that came together. */
export async function* lineGroups({ stdin }: Pick<CliIo, "stdin">): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stdin) {
    rest += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > lineCharactersMax)
      throw new UsageError(`a line of stdin has over ${lineCharactersMax} characters`);
    if (lines.length > 0) yield lines.map(withoutReturn);
  }
  if (rest !== "") yield [withoutReturn(rest)];
}

/** All bytes of stdin. */
export async function readAll({ stdin }: Pick<CliIo, "stdin">): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stdin) chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  return Buffer.concat(chunks);
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
