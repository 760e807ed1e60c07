import { decodeRlp, emptyBytes, emptyTrieRoot, encodeRlp, fromInteger, keccak256, toBigint } from "@stele/eth/node";

/** The fields of a Cancun header that differ from block to block; the others are constant. */
export interface Header {
  readonly parentHash: Uint8Array;
  readonly stateRoot: Uint8Array;
  readonly transactionsRoot: Uint8Array;
  readonly receiptsRoot: Uint8Array;
  readonly logsBloom: Uint8Array;
  readonly number: bigint;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  /** Seconds since the epoch; never less than the parent's. Blocks made in the same second have the same timestamp. */
  readonly timestamp: bigint;
  readonly baseFeePerGas: bigint;
}

export const ZERO_HASH = new Uint8Array(32);
export const COINBASE = new Uint8Array(20);
export const HEADER_NONCE = new Uint8Array(8);
export const EMPTY_OMMERS_HASH = keccak256(Uint8Array.of(0xc0));

/** RLP of the whole header, in the order of Cancun (EIP-4788 last). */
export function encodeHeader(header: Header): Uint8Array {
  return encodeRlp([
    header.parentHash,
    EMPTY_OMMERS_HASH,
    COINBASE,
    header.stateRoot,
    header.transactionsRoot,
    header.receiptsRoot,
    header.logsBloom,
    emptyBytes, // difficulty
    fromInteger(header.number),
    fromInteger(header.gasLimit),
    fromInteger(header.gasUsed),
    fromInteger(header.timestamp),
    emptyBytes, // extra data
    ZERO_HASH, // mix hash, which is PREVRANDAO
    HEADER_NONCE,
    fromInteger(header.baseFeePerGas),
    emptyTrieRoot, // withdrawals
    emptyBytes, // blob gas used
    emptyBytes, // excess blob gas
    ZERO_HASH, // parent beacon block root
  ]);
}

export function decodeHeader(encoded: Uint8Array): Header {
  // Only encodeHeader writes these: a flat list of byte strings.
  const items = decodeRlp(encoded) as Uint8Array[];
  const at = (index: number): Uint8Array => {
    const item = items[index];
    if (item === undefined) throw new Error("A stored block header is malformed.");
    return item;
  };
  return {
    parentHash: at(0),
    stateRoot: at(3),
    transactionsRoot: at(4),
    receiptsRoot: at(5),
    logsBloom: at(6),
    number: toBigint(at(8)),
    gasLimit: toBigint(at(9)),
    gasUsed: toBigint(at(10)),
    timestamp: toBigint(at(11)),
    baseFeePerGas: toBigint(at(15)),
  };
}
