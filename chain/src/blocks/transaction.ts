import { RLP } from "@ethereumjs/rlp";
import { fromBigint, toBigint, trimZeros } from "../lib/bytes.ts";
import { isLowS, keccak256, recoverPublicKey, toAddressBytes } from "../lib/crypto.ts";
import { serverError } from "../rpc-error.ts";

export interface AccessListEntry {
  readonly address: Uint8Array;
  readonly slots: readonly Uint8Array[];
}

/** A signed transaction as it stands in a block. For one without fee market, both fees are its gas price. */
export interface Transaction {
  readonly type: 0 | 1 | 2;
  readonly hash: Uint8Array;
  readonly raw: Uint8Array;
  readonly sender: Uint8Array;
  /** Undefined for a legacy transaction that is bound to no chain. */
  readonly chainId: bigint | undefined;
  readonly nonce: bigint;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  readonly gasLimit: bigint;
  /** Undefined when the transaction makes a contract. */
  readonly to: Uint8Array | undefined;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
  readonly v: bigint;
  readonly r: Uint8Array;
  readonly s: Uint8Array;
}

type Item = Uint8Array | readonly Item[];

const ADDRESS_BYTES = 20;
const LEGACY_ITEMS = 9;
const TYPED_ITEMS = { 1: 11, 2: 12 } as const;
const SIGNATURE_ITEMS = 3;
const LIST_PREFIX = 0xc0;
const MALFORMED = "rlp: the transaction is malformed";

/** Reads a signed transaction. A known `sender`, from the chain's own store, spares the recovery. */
export function parseTransaction(raw: Uint8Array, sender?: Uint8Array): Transaction {
  const first = raw[0];
  if (first === undefined) throw serverError("rlp: the transaction is empty");
  if (first >= LIST_PREFIX) return parseLegacy(raw, sender);
  if (first === 1 || first === 2) return parseTyped(first, raw, sender);
  throw serverError("transaction type not supported");
}

function parseLegacy(raw: Uint8Array, sender: Uint8Array | undefined): Transaction {
  const items = decodeList(raw, LEGACY_ITEMS);
  const [nonce, gasPrice, gasLimit, to, value, data, v, r, s] = items.map(asBytes) as LegacyFields;
  const vNumber = toBigint(v);
  const isProtected = vNumber >= 35n;
  if (!isProtected && vNumber !== 27n && vNumber !== 28n) throw serverError("invalid transaction v, r, s values");
  const chainId = isProtected ? (vNumber - 35n) / 2n : undefined;
  const unsigned = items.slice(0, LEGACY_ITEMS - SIGNATURE_ITEMS);
  if (chainId !== undefined) unsigned.push(fromBigint(chainId), new Uint8Array(0), new Uint8Array(0));
  const yParity = Number(isProtected ? (vNumber - 35n) % 2n : vNumber - 27n);
  const price = toBigint(gasPrice);
  return {
    type: 0,
    hash: keccak256(raw),
    raw,
    sender: sender ?? recoverSender(encodeItems(unsigned), { r, s, yParity }),
    chainId,
    nonce: toBigint(nonce),
    maxFeePerGas: price,
    maxPriorityFeePerGas: price,
    gasLimit: toBigint(gasLimit),
    to: parseTo(to),
    value: toBigint(value),
    data,
    accessList: [],
    v: vNumber,
    r: trimZeros(r),
    s: trimZeros(s),
  };
}

type Bytes = Uint8Array;
type LegacyFields = [Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes];

function parseTyped(type: 1 | 2, raw: Uint8Array, sender: Uint8Array | undefined): Transaction {
  const items = decodeList(raw.subarray(1), TYPED_ITEMS[type]);
  const signatureAt = items.length - SIGNATURE_ITEMS;
  const [v, r, s] = items.slice(signatureAt).map(asBytes) as [Bytes, Bytes, Bytes];
  const feeAt = 2;
  const gasAt = type === 2 ? feeAt + 2 : feeAt + 1;
  const field = (index: number): Uint8Array => asBytes(items[index]);
  const yParity = toBigint(v);
  if (yParity > 1n) throw serverError("invalid transaction v, r, s values");
  const unsigned = (): Uint8Array => Buffer.concat([Uint8Array.of(type), encodeItems(items.slice(0, signatureAt))]);
  return {
    type,
    hash: keccak256(raw),
    raw,
    sender: sender ?? recoverSender(unsigned(), { r, s, yParity: Number(yParity) }),
    chainId: toBigint(field(0)),
    nonce: toBigint(field(1)),
    maxPriorityFeePerGas: toBigint(field(feeAt)),
    maxFeePerGas: toBigint(field(gasAt - 1)),
    gasLimit: toBigint(field(gasAt)),
    to: parseTo(field(gasAt + 1)),
    value: toBigint(field(gasAt + 2)),
    data: field(gasAt + 3),
    accessList: parseAccessList(items[gasAt + 4]),
    v: yParity,
    r: trimZeros(r),
    s: trimZeros(s),
  };
}

function decodeList(encoded: Uint8Array, length: number): Item[] {
  const items = decodeRlp(encoded);
  if (items instanceof Uint8Array || items.length !== length) throw serverError(MALFORMED);
  return [...items];
}

function decodeRlp(encoded: Uint8Array): Item {
  try {
    return RLP.decode(encoded);
  } catch (cause) {
    throw serverError(`rlp: ${cause instanceof Error ? cause.message : "malformed"}`);
  }
}

function encodeItems(items: readonly Item[]): Uint8Array {
  return RLP.encode(items as Uint8Array[]); // the library's type for nested lists is mutable
}

function asBytes(item: Item | undefined): Uint8Array {
  if (!(item instanceof Uint8Array)) throw serverError(MALFORMED);
  return item;
}

function parseTo(to: Uint8Array): Uint8Array | undefined {
  if (to.length === 0) return undefined;
  if (to.length !== ADDRESS_BYTES) throw serverError(MALFORMED);
  return to;
}

function parseAccessList(item: Item | undefined): AccessListEntry[] {
  if (item === undefined || item instanceof Uint8Array) throw serverError(MALFORMED);
  return item.map((entry) => {
    if (entry instanceof Uint8Array || entry.length !== 2) throw serverError(MALFORMED);
    const [address, slots] = entry;
    if (slots === undefined || slots instanceof Uint8Array) throw serverError(MALFORMED);
    return { address: asBytes(address), slots: slots.map(asBytes) };
  });
}

function recoverSender(unsigned: Uint8Array, signature: { r: Uint8Array; s: Uint8Array; yParity: number }): Uint8Array {
  if (!isLowS(toBigint(signature.s))) throw serverError("invalid sender");
  try {
    return toAddressBytes(recoverPublicKey(keccak256(unsigned), signature));
  } catch {
    throw serverError("invalid sender");
  }
}

/** What the sender pays for one unit of gas under a base fee. */
export function effectiveGasPrice(transaction: Transaction, baseFeePerGas: bigint): bigint {
  const withTip = baseFeePerGas + transaction.maxPriorityFeePerGas;
  return withTip < transaction.maxFeePerGas ? withTip : transaction.maxFeePerGas;
}
