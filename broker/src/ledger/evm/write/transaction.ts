import type { Hash } from "../../../domain/topic.ts";
import { fromHex, type Hex, integerBytes, toHex } from "../hex.ts";
import { keccak256, type Signature, type Signer } from "../native-crypto.ts";

/** The gas price that a transaction offers, in wei. */
export type Fees =
  | { readonly kind: "eip1559"; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
  | { readonly kind: "legacy"; readonly gasPrice: bigint };

export interface UnsignedTransaction {
  readonly chainId: number;
  readonly nonce: number;
  readonly fees: Fees;
  readonly gas: number;
  /** Undefined creates a contract. */
  readonly to: Hex | undefined;
  readonly data: Uint8Array;
}

export interface SignedTransaction {
  /** The bytes that are sent to the chain. */
  readonly raw: Uint8Array;
  readonly hash: Hash;
}

/** An RLP string, or the empty access list. */
type Item = Uint8Array | readonly [];

/** Longest payload whose length fits into the header of an RLP item, in bytes. */
const shortMax = 55;
const stringBase = 0x80;
const listBase = 0xc0;
const dynamicFeeType = 2;
const empty = new Uint8Array(0);

/** Signs by EIP-1559, or by EIP-155 for chains without a base fee. Costs a fifth of viem's time. */
export function signTransaction(transaction: UnsignedTransaction, signer: Signer): SignedTransaction {
  const { fees } = transaction;
  const target = transaction.to === undefined ? empty : fromHex(transaction.to);
  const call = [integerBytes(transaction.gas), target, empty, transaction.data];
  const chainId = integerBytes(transaction.chainId);
  const nonce = integerBytes(transaction.nonce);
  const bytes =
    fees.kind === "eip1559"
      ? signDynamic(
          [chainId, nonce, integerBytes(fees.maxPriorityFeePerGas), integerBytes(fees.maxFeePerGas), ...call, []],
          signer,
        )
      : signLegacy([nonce, integerBytes(fees.gasPrice), ...call], { chainId: transaction.chainId, signer });
  return { raw: bytes, hash: toHex(keccak256(bytes)) };
}

function signDynamic(items: readonly Item[], signer: Signer): Buffer {
  const { yParity, r, s }: Signature = signer.sign(keccak256(encodeList(items, dynamicFeeType)));
  return encodeList([...items, integerBytes(yParity), r, s], dynamicFeeType);
}

function signLegacy(items: readonly Item[], options: { readonly chainId: number; readonly signer: Signer }): Buffer {
  const { chainId, signer } = options;
  const { yParity, r, s } = signer.sign(keccak256(encodeList([...items, integerBytes(chainId), empty, empty])));
  return encodeList([...items, integerBytes(chainId * 2 + 35 + yParity), r, s]);
}

/** One RLP list, after the type byte of a typed transaction. */
function encodeList(items: readonly Item[], type?: number): Buffer {
  let payload = 0;
  for (const item of items) payload += itemBytes(item);
  const prefix = type === undefined ? 0 : 1;
  const target = Buffer.allocUnsafe(prefix + headerBytes(payload) + payload);
  if (type !== undefined) target[0] = type;
  let at = writeHeader(target, prefix, { base: listBase, length: payload });
  for (const item of items) at = writeItem(target, at, item);
  return target;
}

function itemBytes(item: Item): number {
  return isOwnItem(item) ? 1 : headerBytes(item.length) + item.length;
}

function writeItem(target: Buffer, at: number, item: Item): number {
  if (!(item instanceof Uint8Array)) return writeHeader(target, at, { base: listBase, length: 0 });
  const start = isOwnItem(item) ? at : writeHeader(target, at, { base: stringBase, length: item.length });
  target.set(item, start);
  return start + item.length;
}

function writeHeader(target: Buffer, at: number, header: { readonly base: number; readonly length: number }): number {
  const { base, length } = header;
  if (length <= shortMax) return target.writeUInt8(base + length, at);
  const bytes = headerBytes(length) - 1;
  target.writeUInt8(base + shortMax + bytes, at);
  return target.writeUIntBE(length, at + 1, bytes);
}

function headerBytes(length: number): number {
  return length <= shortMax ? 1 : 1 + integerBytes(length).length;
}

function isOwnItem(item: Item): boolean {
  const [first] = item;
  return item.length === 1 && first !== undefined && first < stringBase;
}
