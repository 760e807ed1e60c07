import { Account, Address } from "@ethereumjs/util";
import type { ExecutionState } from "../state/execution-state.ts";

export interface AccountOverride {
  readonly address: Uint8Array;
  readonly nonce?: bigint;
  readonly balance?: bigint;
  readonly code?: Uint8Array;
  /** Slots to change; the others stay. */
  readonly slots?: readonly (readonly [slot: Uint8Array, value: Uint8Array])[];
}

export type StateOverrides = readonly AccountOverride[];

/** Overrides parts of the state for one call. */
export async function applyOverrides(state: ExecutionState, overrides: StateOverrides): Promise<void> {
  for (const override of overrides) {
    const address = new Address(override.address);
    const account = state.readAccount(override.address) ?? new Account();
    account.nonce = override.nonce ?? account.nonce;
    account.balance = override.balance ?? account.balance;
    await state.putAccount(address, account);
    if (override.code !== undefined) await state.putCode(address, override.code);
    for (const [slot, value] of override.slots ?? []) await state.putStorage(address, slot, value);
  }
  state.originalStorageCache.clear();
}
