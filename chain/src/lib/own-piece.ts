/**
 * The bytes in a piece of memory of their own, for whoever keeps them. Short buffers of Node.js share pages of 8 KiB: a hash of 32 bytes that is
 * kept would keep its whole page. A piece of its own takes about 200 bytes more than its content.
 */
export function ownPiece(bytes: Uint8Array): Uint8Array {
  return bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}
