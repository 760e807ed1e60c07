/** Bytes in hex, as the RPC interface has them. */
export type Hex = `0x${string}`;

export function toHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;
}

export function fromHex(hex: string): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

export function toQuantity(value: number | bigint): Hex {
  return `0x${value.toString(16)}`;
}

/** An unsigned integer as its bytes, without leading zeros; none for zero. */
export function integerBytes(value: number | bigint): Buffer {
  if (value === 0 || value === 0n) return Buffer.alloc(0);
  const digits = value.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}
