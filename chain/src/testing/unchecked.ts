import { concatHex, type Hex, numberToHex, type Signature, toRlp, trim } from "viem";

interface FeeMarketFields {
  readonly chainId?: number;
  readonly nonce?: number;
  readonly maxPriorityFeePerGas?: bigint | undefined;
  readonly maxFeePerGas?: bigint | undefined;
  readonly gas?: bigint | undefined;
  readonly to?: Hex | null | undefined;
  readonly value?: bigint | undefined;
  readonly data?: Hex | undefined;
}

const toItem = (value: bigint | number | undefined): Hex => (value ? numberToHex(value) : "0x");
const toWord = (value: Hex | undefined): Hex => trim(value ?? "0x");

/** Serializes a transaction of type 2 without viem's checks. */
export function serializeFeeMarketUnchecked(transaction: unknown, signature?: Signature): Hex {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, value, data } = transaction as FeeMarketFields;
  const items = [chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas].map(toItem);
  const unsigned = [...items, to ?? "0x", toItem(value), data ?? "0x", []] as const;
  if (signature === undefined) return concatHex(["0x02", toRlp([...unsigned])]);
  return concatHex(["0x02", toRlp([...unsigned, toItem(signature.yParity), toWord(signature.r), toWord(signature.s)])]);
}
