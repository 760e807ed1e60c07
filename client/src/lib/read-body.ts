/** Reads a body to its end; undefined if it is longer than `bytesMax`. */
export async function readBody(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  bytesMax: number,
): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
    bytes += next.value.length;
    if (bytes > bytesMax) {
      await reader?.cancel();
      return undefined;
    }
    chunks.push(next.value);
  }
  return joined(chunks, bytes);
}

function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
