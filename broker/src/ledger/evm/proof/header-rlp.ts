import { toRlp } from "viem";
import type { Hash } from "../../../domain/topic.ts";
import { fromHex, type Hex, integerBytes, toHex } from "../hex.ts";
import { keccak256 } from "../native-crypto.ts";

/** A block or a receipt as the endpoint gives it. */
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

/** What later forks have added, in their order: London, Shanghai, Cancun, Prague. */
const laterFields: readonly Field[] = [
  ["baseFeePerGas", "quantity"],
  ["withdrawalsRoot", "data"],
  ["blobGasUsed", "quantity"],
  ["excessBlobGas", "quantity"],
  ["parentBeaconBlockRoot", "data"],
  ["requestsHash", "data"],
];

/** RLP of the header of a block that an endpoint gave; undefined when it does not hash to the block's hash, or is incomplete. */
export function findHeader(block: RpcObject): Uint8Array | undefined {
  const later = laterFields.filter(([name]) => block[name] !== undefined && block[name] !== null);
  const fields = [...commonFields, ...later].map((field) => readField(block, field));
  if (fields.some((field) => field === undefined)) return undefined;
  const header = toRlp(
    fields.flatMap((field) => field ?? []),
    "bytes",
  );
  return toHex(keccak256(header)) === (block["hash"] as Hash) ? header : undefined; // A hash, or the comparison fails.
}

function readField(block: RpcObject, [name, kind]: Field): Uint8Array | undefined {
  const value = block[name];
  if (!isHex(value)) return undefined;
  return kind === "data" ? fromHex(value) : integerBytes(BigInt(value));
}

/** Whether a value is hex digits after `0x`, at least none. */
export function isHex(value: unknown): value is Hex {
  return typeof value === "string" && /^0x[0-9a-fA-F]*$/.test(value);
}
