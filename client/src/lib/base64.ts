/** Bytes for one call of `fromCharCode`; few, because its arguments go on the stack. */
const sliceBytes = 8192;

/** Standard Base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    // `apply` reads the array as it is. Spreading it would visit each byte by an iterator, which takes ten times as long.
    binary += String.fromCharCode.apply(undefined, bytes.subarray(at, at + sliceBytes) as unknown as number[]); // Any array-like will do.
  }
  return btoa(binary);
}

/** @throws DOMException if the text is not Base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  // `Uint8Array.from` would make a string of each character first: over a second for 8 MiB, the longest content.
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
