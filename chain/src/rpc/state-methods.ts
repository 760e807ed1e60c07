import { emptyTrieRoot, padStart, toBigint, toHex, toQuantity } from "@stele/eth/node";
import { PROOF_KEYS_MAX } from "../limits.ts";
import { invalidParams } from "../rpc-error.ts";
import { EMPTY_CODE_HASH } from "../state/account.ts";
import type { StateView } from "../state/state-view.ts";
import { getState } from "./block-tag.ts";
import type { ReadContext, RpcMethods } from "./context.ts";
import { type Params, toFixed } from "./params.ts";

const WORD_BYTES = 32;

export const stateMethods: RpcMethods<ReadContext> = {
  eth_getBalance: async ({ chain }, params) => {
    const address = params.address(0);
    return toQuantity((await getState(chain, params.optional(1))).view.findAccount(address)?.balance ?? 0n);
  },
  eth_getTransactionCount: async ({ chain }, params) => {
    const address = params.address(0);
    if (params.optional(1) === "pending") return toQuantity(chain.nextNonce(address));
    return toQuantity((await getState(chain, params.optional(1))).view.findAccount(address)?.nonce ?? 0n);
  },
  eth_getCode: async ({ chain }, params) => {
    const address = params.address(0);
    return toHex((await getState(chain, params.optional(1))).view.getCode(address));
  },
  eth_getStorageAt: async ({ chain }, params) => {
    const address = params.address(0);
    const slot = toSlot(params.required(1));
    return toHex(padStart((await getState(chain, params.optional(2))).view.getStorage(address, slot), WORD_BYTES));
  },
  eth_getProof: getProof,
};

async function getProof({ chain }: ReadContext, params: Params): Promise<unknown> {
  const address = params.address(0);
  const keys = params.required(1);
  if (!Array.isArray(keys)) throw invalidParams("invalid argument 1: storage keys must be an array");
  if (keys.length > PROOF_KEYS_MAX) throw invalidParams(`too many keys: at most ${PROOF_KEYS_MAX}`);
  const { view } = await getState(chain, params.optional(2));
  const account = view.findAccount(address);
  return {
    address: toHex(address),
    accountProof: view.proveAccount(address).map(toHex),
    balance: toQuantity(account?.balance ?? 0n),
    nonce: toQuantity(account?.nonce ?? 0n),
    codeHash: toHex(account?.codeHash ?? EMPTY_CODE_HASH),
    storageHash: toHex(account?.storageRoot ?? emptyTrieRoot),
    storageProof: keys.map((key: unknown) => proveSlot(view, address, key)),
  };
}

function proveSlot(view: StateView, address: Uint8Array, key: unknown): unknown {
  const slot = toSlot(key);
  return {
    key,
    value: toQuantity(toBigint(view.getStorage(address, slot))),
    proof: view.proveStorage(address, slot).map(toHex),
  };
}

/** Reads a slot given as 32 bytes or as a shorter hex number. */
function toSlot(value: unknown): Uint8Array {
  const isShort = typeof value === "string" && /^0x[0-9a-fA-F]{1,63}$/.test(value);
  return toFixed(isShort ? `0x${value.slice(2).padStart(WORD_BYTES * 2, "0")}` : value, WORD_BYTES, "storage key");
}
