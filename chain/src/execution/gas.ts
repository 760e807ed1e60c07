import type { AccessListEntry } from "../blocks/transaction.ts";

const TRANSACTION_GAS = 21_000n;
const CREATION_GAS = 32_000n;
const ZERO_BYTE_GAS = 4;
const NONZERO_BYTE_GAS = 16;
const INITCODE_WORD_GAS = 2n;
const ACCESS_LIST_ADDRESS_GAS = 2_400n;
const ACCESS_LIST_SLOT_GAS = 1_900n;
const WORD_BYTES = 32n;

/** Longest init code of a transaction that creates a contract, in bytes (EIP-3860). */
export const INITCODE_BYTES_MAX = 49_152;

export interface IntrinsicParts {
  readonly to: Uint8Array | undefined;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
}

/** Gas that a transaction costs before anything runs (Yellow Paper g0, EIP-2028, 2930 and 3860). */
export function intrinsicGas({ to, data, accessList }: IntrinsicParts): bigint {
  const creation =
    to === undefined ? CREATION_GAS + INITCODE_WORD_GAS * ((BigInt(data.length) + WORD_BYTES - 1n) / WORD_BYTES) : 0n;
  const slots = accessList.reduce((count, entry) => count + entry.slots.length, 0);
  return (
    TRANSACTION_GAS +
    creation +
    dataGas(data) +
    ACCESS_LIST_ADDRESS_GAS * BigInt(accessList.length) +
    ACCESS_LIST_SLOT_GAS * BigInt(slots)
  );
}

function dataGas(data: Uint8Array): bigint {
  let zeros = 0;
  for (let index = 0; index < data.length; index += 1) if (data[index] === 0) zeros += 1;
  return BigInt(zeros * ZERO_BYTE_GAS + (data.length - zeros) * NONZERO_BYTE_GAS);
}
