/** Bytes for one call of `fromCharCode`; few, because its arguments go on the stack. */
const sliceBytes = 8192;

/** Standard Base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    binary += String.fromCharCode(...bytes.subarray(at, at + sliceBytes));
  }
  return btoa(binary);
}

/** @throws DOMException if the text is no Base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
