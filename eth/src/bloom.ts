/** Size of the logs bloom of a receipt or a block. */
export const bloomBytes = 256;

/** The bits of a logs bloom that an address or topic sets; `hash` is its Keccak-256 (Yellow Paper, section 4.3.1). */
export function bloomBits(hash: Uint8Array): readonly number[] {
  return [0, 2, 4].map((at) => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & (8 * bloomBytes - 1));
}

export function setBloomBit(bloom: Uint8Array, bit: number): void {
  const at = byteOf(bit);
  bloom[at] = (bloom[at] ?? 0) | (1 << (bit & 7));
}

export function hasBloomBit(bloom: Uint8Array, bit: number): boolean {
  return ((bloom[byteOf(bit)] ?? 0) & (1 << (bit & 7))) !== 0;
}

function byteOf(bit: number): number {
  return bloomBytes - 1 - (bit >> 3);
}
