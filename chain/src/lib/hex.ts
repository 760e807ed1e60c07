export type Hex = `0x${string}`;

/** A JSON-RPC quantity: no leading zeros. */
export function toQuantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`;
}
