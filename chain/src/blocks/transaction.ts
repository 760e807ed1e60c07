import {
  decodeRlp,
  emptyBytes,
  encodeRlp,
  fromInteger,
  headerBytes,
  isLowS,
  keccak256,
  listHeader,
  type RlpItem,
  recoverPublicKey,
  type Signature,
  toAddressBytes,
  toBigint,
} from "@stele/eth/node";
import { serverError } from "../rpc-error.ts";

export interface AccessListEntry {
  readonly address: Uint8Array;
  readonly slots: readonly Uint8Array[];
}

/** A signed transaction. Without a fee market (types 0 and 1), both fees are its gas price. */
export interface Transaction {
  readonly type: 0 | 1 | 2;
  readonly hash: Uint8Array;
  readonly raw: Uint8Array;
  readonly sender: Uint8Array;
  /** Undefined for a legacy transaction without replay protection (EIP-155). */
  readonly chainId: bigint | undefined;
  readonly nonce: bigint;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  readonly gasLimit: bigint;
  /** Undefined when the transaction creates a contract. */
  readonly to: Uint8Array | undefined;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
  readonly v: bigint;
  readonly r: Uint8Array;
  readonly s: Uint8Array;
}

const ADDRESS_BYTES = 20;
const SLOT_BYTES = 32;
const LEGACY_ITEMS = 9;
const ACCESS_LIST_ITEMS = 11;
const FEE_MARKET_ITEMS = 12;
const SIGNATURE_ITEMS = 3;
const LIST_PREFIX = 0xc0;
/** Highest nonce of a transaction (EIP-2681). */
const NONCE_MAX = 2n ** 64n - 2n;
const UINT256_BYTES = 32;

/**
 * Reads a transaction of the chain's file. Recovers the sender only when somebody asks for it: that is expensive, and no hash covers the sender that is stored.
 * @throws as parseTransaction.
 */
export function parseStoredTransaction(raw: Uint8Array): Transaction {
  let sender: Uint8Array | undefined;
  const get = (): Uint8Array => (sender ??= parseTransaction(raw).sender);
  return Object.defineProperty(parseTransaction(raw, emptyBytes), "sender", { get, enumerable: true });
}

/**
 * Reads a signed transaction. Recovers the sender, which is expensive, unless `sender` is given.
 * @throws ProviderRpcError if the transaction is invalid.
 */
export function parseTransaction(raw: Uint8Array, sender?: Uint8Array): Transaction {
  const first = raw[0];
  if (first === undefined) throw serverError("typed transaction too short");
  if (first >= LIST_PREFIX) return parseLegacy(raw, sender);
  if (first === 1 || first === 2) return parseTyped(first, raw, sender);
  throw serverError("transaction type not supported");
}

function parseLegacy(raw: Uint8Array, sender: Uint8Array | undefined): Transaction {
  const fields = new Fields(raw, LEGACY_ITEMS);
  const v = fields.quantity(6);
  const isProtected = v >= 35n;
  if (!isProtected && v !== 27n && v !== 28n) throw serverError("invalid transaction v, r, s values");
  const chainId = isProtected ? (v - 35n) / 2n : undefined;
  const signature = fields.signature(Number(isProtected ? (v - 35n) % 2n : v - 27n));
  const suffix = chainId === undefined ? emptyBytes : encodedItems([fromInteger(chainId), emptyBytes, emptyBytes]);
  const gasPrice = fields.quantity(1);
  return {
    type: 0,
    hash: keccak256(raw),
    raw,
    sender: sender ?? recoverSender(signingHash(fields, { prefix: emptyBytes, suffix }), signature),
    chainId,
    nonce: fields.nonce(0),
    maxFeePerGas: gasPrice,
    maxPriorityFeePerGas: gasPrice,
    gasLimit: fields.quantity(2),
    to: fields.to(3),
    value: fields.quantity(4),
    data: fields.bytes(5),
    accessList: [],
    v,
    r: signature.r,
    s: signature.s,
  };
}

function parseTyped(type: 1 | 2, raw: Uint8Array, sender: Uint8Array | undefined): Transaction {
  const fields = new Fields(raw.subarray(1), type === 1 ? ACCESS_LIST_ITEMS : FEE_MARKET_ITEMS);
  const gasAt = type === 1 ? 3 : 4;
  const v = fields.quantity(gasAt + 5);
  if (v > 1n) throw serverError("invalid transaction v, r, s values");
  const signature = fields.signature(Number(v));
  return {
    type,
    hash: keccak256(raw),
    raw,
    sender:
      sender ?? recoverSender(signingHash(fields, { prefix: Uint8Array.of(type), suffix: emptyBytes }), signature),
    chainId: fields.quantity(0),
    nonce: fields.nonce(1),
    maxPriorityFeePerGas: fields.quantity(2),
    maxFeePerGas: fields.quantity(gasAt - 1),
    gasLimit: fields.quantity(gasAt),
    to: fields.to(gasAt + 1),
    value: fields.quantity(gasAt + 2),
    data: fields.bytes(gasAt + 3),
    accessList: fields.accessList(gasAt + 4),
    v,
    r: signature.r,
    s: signature.s,
  };
}

/** The items of a transaction's list, each checked for its type when it is read. */
class Fields {
  readonly encoded: Uint8Array;
  readonly #items: readonly RlpItem[];

  constructor(encoded: Uint8Array, length: number) {
    const items = decode(encoded);
    if (items instanceof Uint8Array || items.length !== length)
      throw serverError("rlp: wrong number of fields for a transaction");
    this.encoded = encoded;
    this.#items = items;
  }

  bytes(index: number): Uint8Array {
    return asBytes(this.#items[index]);
  }

  quantity(index: number): bigint {
    const bytes = this.bytes(index);
    if (bytes[0] === 0) throw serverError("rlp: non-canonical integer (leading zero bytes)");
    if (bytes.length > UINT256_BYTES) throw serverError("rlp: input string too long for an integer");
    return toBigint(bytes);
  }

  nonce(index: number): bigint {
    const nonce = this.quantity(index);
    if (nonce > NONCE_MAX) throw serverError("nonce has max value");
    return nonce;
  }

  to(index: number): Uint8Array | undefined {
    const to = this.bytes(index);
    if (to.length !== 0 && to.length !== ADDRESS_BYTES)
      throw serverError("rlp: input string has the wrong size for an address");
    return to.length === 0 ? undefined : to;
  }

  accessList(index: number): AccessListEntry[] {
    return asList(this.#items[index]).map((entry) => {
      const [address, slots, ...rest] = asList(entry);
      if (rest.length > 0) throw malformed();
      return { address: sized(address, ADDRESS_BYTES), slots: asList(slots).map((slot) => sized(slot, SLOT_BYTES)) };
    });
  }

  signature(yParity: number): Signature {
    const first = this.#items.length - SIGNATURE_ITEMS;
    this.quantity(first + 1);
    this.quantity(first + 2);
    return { r: this.bytes(first + 1), s: this.bytes(first + 2), yParity };
  }

  /** The encoded items before the signature, as the transaction has them. */
  unsigned(): Uint8Array {
    const signatureBytes = encodedItems(this.#items.slice(-SIGNATURE_ITEMS)).length;
    const payload = this.#items.length === 0 ? 0 : this.#payloadStart();
    return this.encoded.subarray(payload, this.encoded.length - signatureBytes);
  }

  /** Length of the list's header: header and payload together fill `encoded`. */
  #payloadStart(): number {
    for (let start = 1; start <= 5; start += 1) {
      if (headerBytes(this.encoded.length - start) === start) return start;
    }
    throw malformed();
  }
}

function decode(encoded: Uint8Array): RlpItem {
  try {
    return decodeRlp(encoded);
  } catch (cause) {
    throw serverError(cause instanceof Error ? `rlp: ${cause.message}` : "rlp: malformed");
  }
}

function asBytes(item: RlpItem | undefined): Uint8Array {
  if (!(item instanceof Uint8Array)) throw malformed();
  return item;
}

function asList(item: RlpItem | undefined): readonly RlpItem[] {
  if (item === undefined || item instanceof Uint8Array) throw malformed();
  return item;
}

function sized(item: RlpItem | undefined, length: number): Uint8Array {
  const bytes = asBytes(item);
  if (bytes.length !== length) throw malformed();
  return bytes;
}

function malformed(): Error {
  return serverError("rlp: the transaction is malformed");
}

/** The items without a list around them. */
function encodedItems(items: readonly RlpItem[]): Uint8Array {
  return Buffer.concat(items.map((item) => encodeRlp(item)));
}

/** The hash that the sender signed: of `prefix`, then a list of the items before the signature and `suffix`. Does not copy the items. */
function signingHash(
  fields: Fields,
  { prefix, suffix }: { readonly prefix: Uint8Array; readonly suffix: Uint8Array },
): Uint8Array {
  const unsigned = fields.unsigned();
  return keccak256(prefix, listHeader(unsigned.length + suffix.length), unsigned, suffix);
}

function recoverSender(digest: Uint8Array, signature: Signature): Uint8Array {
  if (!isLowS(toBigint(signature.s))) throw serverError("invalid sender");
  try {
    return toAddressBytes(recoverPublicKey(digest, signature));
  } catch {
    throw serverError("invalid sender");
  }
}

/** What the sender pays for one unit of gas under a base fee. */
export function effectiveGasPrice(transaction: Transaction, baseFeePerGas: bigint): bigint {
  const withTip = baseFeePerGas + transaction.maxPriorityFeePerGas;
  return withTip < transaction.maxFeePerGas ? withTip : transaction.maxFeePerGas;
}
