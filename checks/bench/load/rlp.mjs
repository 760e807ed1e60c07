const shortMax = 55;
const stringBase = 0x80;
const listBase = 0xc0;

/** RLP of a list of byte strings and of lists that are encoded already. @param {readonly Uint8Array[]} items each encoded */
export function encodeList(items) {
  let length = 0;
  for (const item of items) length += item.length;
  return Buffer.concat([header(listBase, length), ...items]);
}

/** RLP of a byte string. @param {Uint8Array} bytes */
export function encodeBytes(bytes) {
  if (bytes.length === 1 && bytes[0] < stringBase) return bytes;
  return Buffer.concat([header(stringBase, bytes.length), bytes]);
}

/** RLP of an integer from 0. @param {number | bigint} value */
export function encodeInteger(value) {
  return encodeBytes(integerBytes(value));
}

/** @param {number | bigint} value */
function integerBytes(value) {
  if (value === 0 || value === 0n) return Buffer.alloc(0);
  const hex = value.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
}

function header(base, length) {
  if (length <= shortMax) return Buffer.from([base + length]);
  const bytes = integerBytes(length);
  return Buffer.concat([Buffer.from([base + shortMax + bytes.length]), bytes]);
}
