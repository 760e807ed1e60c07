import {
  decodeRlp,
  emptyBytes,
  encodeRlp,
  fromHex,
  fromInteger,
  type Hex,
  keccak256,
  type RlpItem,
  toHex,
} from "@stele/eth/node";
import { isQuantity } from "../endpoint/rpc-log.ts";

/** A block or a receipt from an endpoint. */
export type RpcObject = Readonly<Record<string, unknown>>;

type FieldKind = "data" | "quantity";
type Field = readonly [name: string, kind: FieldKind];

/** Fields of every header, in the order of their encoding. */
const commonFields: readonly Field[] = [
  ["parentHash", "data"],
  ["sha3Uncles", "data"],
  ["miner", "data"],
  ["stateRoot", "data"],
  ["transactionsRoot", "data"],
  ["receiptsRoot", "data"],
  ["logsBloom", "data"],
  ["difficulty", "quantity"],
  ["number", "quantity"],
  ["gasLimit", "quantity"],
  ["gasUsed", "quantity"],
  ["timestamp", "quantity"],
  ["extraData", "data"],
  ["mixHash", "data"],
  ["nonce", "data"],
];

/** Fields that later forks added, in order: London, Shanghai, Cancun, Prague. */
const laterFields: readonly Field[] = [
  ["baseFeePerGas", "quantity"],
  ["withdrawalsRoot", "data"],
  ["blobGasUsed", "quantity"],
  ["excessBlobGas", "quantity"],
  ["parentBeaconBlockRoot", "data"],
  ["requestsHash", "data"],
];

/** Number of parts of the extra data of a block that validators sealed: vanity, validators, vote, round, seals. */
const sealedParts = 5;
/** Number of the first parts, on which the validators agree before they seal. */
const agreedParts = 3;

/** RLP of a block's header; undefined if the header is incomplete, or does not hash to the block's hash. */
export function findHeader(block: RpcObject): Uint8Array | undefined {
  for (const extraData of extraDataForms(block["extraData"])) {
    const header = encodeHeader({ ...block, extraData });
    if (header !== undefined && toHex(keccak256(header)) === block["hash"]) return header;
  }
  return undefined;
}

function encodeHeader(block: RpcObject): Uint8Array | undefined {
  const later = laterFields.filter(([name]) => block[name] !== undefined && block[name] !== null);
  const fields = [...commonFields, ...later].map((field) => readField(block, field));
  if (fields.some((field) => field === undefined)) return undefined;
  return encodeRlp(fields.flatMap((field) => field ?? []));
}

/**
 * The variants of the extra data that a block's hash may cover. Besu and GoQuorum leave out the parts that validators add after they agree on a block: QBFT
 * hashes round 0 and no seals, IBFT 2.0 neither round nor seals.
 */
function extraDataForms(extraData: unknown): readonly unknown[] {
  const parts = findList(extraData);
  if (parts?.length !== sealedParts) return [extraData];
  const agreed = parts.slice(0, agreedParts);
  return [extraData, toHex(encodeRlp([...agreed, emptyBytes, []])), toHex(encodeRlp(agreed))];
}

function findList(encoded: unknown): readonly RlpItem[] | undefined {
  if (!isHex(encoded)) return undefined;
  try {
    const decoded = decodeRlp(fromHex(encoded));
    return decoded instanceof Uint8Array ? undefined : decoded;
  } catch {
    return undefined;
  }
}

function readField(block: RpcObject, [name, kind]: Field): Uint8Array | undefined {
  const value = block[name];
  if (kind === "quantity") return isQuantity(value) ? fromInteger(BigInt(value)) : undefined;
  return isHex(value) ? fromHex(value) : undefined;
}

export function isHex(value: unknown): value is Hex {
  return typeof value === "string" && /^0x[0-9a-fA-F]*$/.test(value);
}
