/** Nibbles (half-bytes) of a key, the high half of each byte first. */
export function toNibbles(key: Uint8Array): Uint8Array {
  const nibbles = new Uint8Array(key.length * 2);
  for (let index = 0; index < key.length; index += 1) {
    const byte = key[index] ?? 0;
    nibbles[index * 2] = byte >> 4;
    nibbles[index * 2 + 1] = byte & 0x0f;
  }
  return nibbles;
}

/** The hex-prefix encoding of a path (Yellow Paper, appendix C). */
export function packPath(path: Uint8Array, isLeaf: boolean): Uint8Array {
  const isOdd = path.length % 2 === 1;
  const packed = new Uint8Array((path.length >> 1) + 1);
  packed[0] = (isLeaf ? 0x20 : 0) | (isOdd ? 0x10 | (path[0] ?? 0) : 0);
  for (let from = isOdd ? 1 : 0, to = 1; from < path.length; from += 2, to += 1) {
    packed[to] = ((path[from] ?? 0) << 4) | (path[from + 1] ?? 0);
  }
  return packed;
}

/** Reads a path in hex-prefix encoding; undefined if the encoding is not canonical. */
export function unpackPath(packed: Uint8Array): { readonly path: Uint8Array; readonly isLeaf: boolean } | undefined {
  const nibbles = toNibbles(packed);
  const [flag, padding] = nibbles;
  if (flag === undefined || flag > 3) return undefined;
  const isOdd = flag % 2 === 1;
  if (!isOdd && padding !== 0) return undefined;
  return { isLeaf: flag >= 2, path: nibbles.subarray(isOdd ? 1 : 2) };
}

/** Length of the common prefix of two paths, in nibbles. */
export function sharedLength(left: Uint8Array, right: Uint8Array): number {
  const end = Math.min(left.length, right.length);
  let length = 0;
  while (length < end && left[length] === right[length]) length += 1;
  return length;
}
