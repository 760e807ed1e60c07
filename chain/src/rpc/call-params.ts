import { emptyBytes, isSameBytes } from "@stele/eth/node";
import type { AccessListEntry } from "../blocks/transaction.ts";
import type { ReadableChain } from "../chain/readable-chain.ts";
import type { Message } from "../execution/execute.ts";
import { intrinsicGas } from "../execution/gas.ts";
import type { Simulation } from "../execution/simulator.ts";
import type { StateOverrides } from "../execution/state-overrides.ts";
import { OVERRIDE_CODE_BYTES_MAX } from "../limits.ts";
import { invalidParams } from "../rpc-error.ts";
import { getState } from "./block-tag.ts";
import { isRecord, type Params, toData, toFixed, toQuantityValue, withoutNulls } from "./params.ts";

type Fields = Readonly<Record<string, unknown>>;

const ADDRESS_BYTES = 20;
const WORD_BYTES = 32;

/** Reads the parameters of `eth_call` and `eth_estimateGas`: transaction, block, state overrides. Refuses block overrides, which would have no effect. */
export async function toSimulation(chain: ReadableChain, params: Params): Promise<Simulation> {
  const fields = params.required(0);
  if (!isRecord(fields)) throw invalidParams("invalid argument 0: a call must be an object");
  if (!isEmpty(params.optional(3) ?? {})) throw invalidParams("invalid argument 3: block overrides are not supported");
  const { head, view } = await getState(chain, params.optional(1));
  const message = toMessage(withoutNulls(fields), chain.options.callGasMax);
  const overrides = params.optional(2);
  return {
    message: { ...message, intrinsicGas: intrinsicGas(message) },
    view,
    header: head.header,
    ...(overrides === undefined ? {} : { overrides: toOverrides(overrides) }),
  };
}

function isEmpty(value: unknown): boolean {
  return isRecord(value) && Object.keys(withoutNulls(value)).length === 0;
}

function toMessage(fields: Fields, gasMax: bigint): Omit<Message, "intrinsicGas"> {
  const gas = optionalQuantity(fields, "gas") ?? gasMax;
  const { from, to, accessList } = fields;
  return {
    from: from === undefined ? new Uint8Array(ADDRESS_BYTES) : toFixed(from, ADDRESS_BYTES, "from"),
    to: to === undefined ? undefined : toFixed(to, ADDRESS_BYTES, "to"),
    gasLimit: gas < gasMax ? gas : gasMax,
    gasPrice: optionalQuantity(fields, "gasPrice") ?? optionalQuantity(fields, "maxFeePerGas") ?? 0n,
    value: optionalQuantity(fields, "value") ?? 0n,
    data: toInput(fields),
    accessList: toAccessList(accessList),
  };
}

function toInput({ input, data }: Fields): Uint8Array {
  const inputBytes = input === undefined ? undefined : toData(input, "input");
  const dataBytes = data === undefined ? undefined : toData(data, "data");
  if (inputBytes !== undefined && dataBytes !== undefined && !isSameBytes(inputBytes, dataBytes)) {
    throw invalidParams(
      'both "data" and "input" are set and not equal. Please use "input" to pass transaction call data',
    );
  }
  return inputBytes ?? dataBytes ?? emptyBytes;
}

function optionalQuantity(fields: Fields, name: string): bigint | undefined {
  const value = fields[name];
  return value === undefined ? undefined : toQuantityValue(value, name);
}

function toAccessList(list: unknown): AccessListEntry[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw invalidParams("invalid accessList: must be an array");
  return list.map((entry: unknown) => {
    if (!isRecord(entry) || !Array.isArray(entry["storageKeys"])) throw invalidParams("invalid accessList entry");
    const slots = entry["storageKeys"].map((slot: unknown) => toFixed(slot, WORD_BYTES, "storage key"));
    return { address: toFixed(entry["address"], ADDRESS_BYTES, "access list address"), slots };
  });
}

function toOverrides(overrides: unknown): StateOverrides {
  if (!isRecord(overrides)) throw invalidParams("invalid argument 2: state overrides must be an object");
  return Object.entries(overrides).map(([address, fields]) => {
    if (!isRecord(fields)) throw invalidParams("invalid state override: must be an object");
    const override = withoutNulls(fields);
    if (override["state"] !== undefined)
      throw invalidParams("invalid state override: state is not supported, use stateDiff");
    const nonce = optionalQuantity(override, "nonce");
    const balance = optionalQuantity(override, "balance");
    return {
      address: toFixed(address, ADDRESS_BYTES, "override address"),
      ...(nonce === undefined ? {} : { nonce }),
      ...(balance === undefined ? {} : { balance }),
      ...(override["code"] === undefined ? {} : { code: toCode(override["code"]) }),
      slots: toSlots(override["stateDiff"]),
    };
  });
}

function toCode(value: unknown): Uint8Array {
  const code = toData(value, "override code");
  if (code.length <= OVERRIDE_CODE_BYTES_MAX) return code;
  throw invalidParams(`invalid override code: at most ${OVERRIDE_CODE_BYTES_MAX} bytes`);
}

function toSlots(diff: unknown): (readonly [Uint8Array, Uint8Array])[] {
  if (diff === undefined) return [];
  if (!isRecord(diff)) throw invalidParams("invalid stateDiff: must be an object");
  return Object.entries(diff).map(
    ([slot, value]) => [toFixed(slot, WORD_BYTES, "slot"), toFixed(value, WORD_BYTES, "slot value")] as const,
  );
}
