/** Whether both have the same bytes. Also runs in browsers; the version in node.ts is faster for long arrays. */
export function isSameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
