import type { AccountFields, StateManagerInterface } from "@ethereumjs/common";
import { Account, type Address } from "@ethereumjs/util";
import { emptyBytes, emptyTrieRoot, isSameBytes, trimZeros, toLatin1 } from "@stele/eth/node";
import { rememberedKeccak } from "../lib/remembered-keccak.ts";
import { serverError } from "../rpc-error.ts";
import type { StateView } from "./state-view.ts";

/** Changes by an execution, by address and slot as latin1 strings. `accounts` also has those that were only read; undefined means missing or deleted. */
export interface StateChanges {
  readonly accounts: ReadonlyMap<string, Account | undefined>;
  readonly storage: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>;
  readonly codes: readonly Uint8Array[];
}

const SLOT_BYTES = 32;

/**
 * The state that the EVM works on: changes in maps over a view, with an undo list for checkpoints. No method waits, and the tries change only when the block is
 * sealed.
 */
export class ExecutionState implements StateManagerInterface {
  #view: StateView;
  readonly #accounts = new Map<string, Account | undefined>();
  readonly #storage = new Map<string, Map<string, Uint8Array>>();
  readonly #codes = new Map<string, Uint8Array>();
  readonly #original = new Map<string, Uint8Array>();
  readonly #undo: (() => void)[] = [];
  readonly #checkpoints: number[] = [];

  /** Slot values at the start of the transaction, which the price of a write depends on (EIP-2200). */
  readonly originalStorageCache = {
    get: (address: Address, slot: Uint8Array): Promise<Uint8Array> =>
      Promise.resolve(
        this.#original.get(toLatin1(address.bytes) + toLatin1(slot)) ?? this.readStorage(address.bytes, slot),
      ),
    clear: (): void => this.#original.clear(),
  };

  constructor(view: StateView) {
    this.#view = view;
  }

  /** Forgets every change and continues from another view. */
  reset(view: StateView): void {
    this.#view = view;
    for (const part of [this.#accounts, this.#storage, this.#codes, this.#original]) part.clear();
    this.#undo.length = 0;
    this.#checkpoints.length = 0;
  }

  changes(): StateChanges {
    return { accounts: this.#accounts, storage: this.#storage, codes: [...this.#codes.values()] };
  }

  getAccount(address: Address): Promise<Account | undefined> {
    return Promise.resolve(this.readAccount(address.bytes));
  }

  readAccount(address: Uint8Array): Account | undefined {
    const key = toLatin1(address);
    if (!this.#accounts.has(key)) this.#accounts.set(key, this.#loadAccount(address));
    const account = this.#accounts.get(key);
    return account === undefined ? undefined : copyAccount(account);
  }

  putAccount(address: Address, account?: Account): Promise<void> {
    this.writeAccount(address.bytes, account);
    return Promise.resolve();
  }

  writeAccount(address: Uint8Array, account: Account | undefined): void {
    this.#write(this.#accounts, toLatin1(address), account === undefined ? undefined : copyAccount(account));
  }

  async deleteAccount(address: Address): Promise<void> {
    await this.clearStorage(address);
    await this.putAccount(address, undefined);
  }

  modifyAccountFields(address: Address, fields: AccountFields): Promise<void> {
    this.changeAccount(address.bytes, fields);
    return Promise.resolve();
  }

  /** Sets some fields of an account, and creates the account if it is missing. */
  changeAccount(address: Uint8Array, fields: AccountFields): void {
    this.writeAccount(address, Object.assign(this.readAccount(address) ?? new Account(), fields));
  }

  putCode(address: Address, code: Uint8Array): Promise<void> {
    this.writeCode(address.bytes, code);
    return Promise.resolve();
  }

  writeCode(address: Uint8Array, code: Uint8Array): void {
    const codeHash = rememberedKeccak(code); // remembers only short code: all topic contracts have the same
    this.#write(this.#codes, toLatin1(codeHash), code);
    this.changeAccount(address, { codeHash });
  }

  getCode(address: Address): Promise<Uint8Array> {
    const account = this.readAccount(address.bytes);
    return Promise.resolve(account === undefined ? emptyBytes : this.readCode(account.codeHash));
  }

  readCode(codeHash: Uint8Array): Uint8Array {
    return this.#codes.get(toLatin1(codeHash)) ?? this.#view.getCodeByHash(codeHash);
  }

  async getCodeSize(address: Address): Promise<number> {
    return (await this.getCode(address)).length;
  }

  getStorage(address: Address, slot: Uint8Array): Promise<Uint8Array> {
    return Promise.resolve(this.readStorage(address.bytes, slot));
  }

  /** The value of a slot without leading zeros, as the transactions so far left it. */
  readStorage(address: Uint8Array, slot: Uint8Array): Uint8Array {
    if (slot.length !== SLOT_BYTES) throw new Error("A storage slot has 32 bytes.");
    const changed = this.#storage.get(toLatin1(address))?.get(toLatin1(slot));
    return changed ?? this.#view.getStorage(address, slot);
  }

  /** The value of a slot without leading zeros, as the block before left it. */
  readCommitted(address: Uint8Array, slot: Uint8Array): Uint8Array {
    return this.#view.getStorage(address, slot);
  }

  /** What the transactions so far stored in a contract, by slot as latin1. */
  copyStorage(address: Uint8Array): ReadonlyMap<string, Uint8Array> {
    return new Map(this.#storage.get(toLatin1(address)));
  }

  writeStorage(address: Uint8Array, slot: Uint8Array, value: Uint8Array): void {
    this.#write(this.#slotsOf(address), toLatin1(slot), trimZeros(value));
  }

  putStorage(address: Address, slot: Uint8Array, value: Uint8Array): Promise<void> {
    const key = toLatin1(address.bytes) + toLatin1(slot);
    if (!this.#original.has(key)) this.#original.set(key, this.readStorage(address.bytes, slot));
    this.writeStorage(address.bytes, slot, value);
    return Promise.resolve();
  }

  /**
   * Clears the storage of an account. Only accounts created in this transaction are ever cleared (EIP-6780), so the view has no slots of them.
   * @throws ProviderRpcError for another account, which only the overrides of a call can empty.
   */
  clearStorage(address: Address): Promise<void> {
    const account = this.#loadAccount(address.bytes);
    if (account !== undefined && !isSameBytes(account.storageRoot, emptyTrieRoot)) {
      throw serverError("the state overrides empty an account that has storage");
    }
    const slots = this.#storage.get(toLatin1(address.bytes));
    for (const slot of slots?.keys() ?? []) this.#write(slots ?? new Map(), slot, emptyBytes);
    return Promise.resolve();
  }

  checkpoint(): Promise<void> {
    this.#checkpoints.push(this.#undo.length);
    return Promise.resolve();
  }

  commit(): Promise<void> {
    this.#checkpoints.pop();
    if (this.#checkpoints.length === 0) this.#undo.length = 0;
    return Promise.resolve();
  }

  revert(): Promise<void> {
    const start = this.#checkpoints.pop() ?? 0;
    while (this.#undo.length > start) this.#undo.pop()?.();
    return Promise.resolve();
  }

  getStateRoot(): Promise<Uint8Array> {
    throw new Error("The state root is known only once the block is sealed.");
  }

  setStateRoot(): Promise<void> {
    throw new Error("The state root cannot be set.");
  }

  hasStateRoot(): Promise<boolean> {
    throw new Error("State roots are not looked up here.");
  }

  clearCaches(): void {
    this.#original.clear();
  }

  shallowCopy(): StateManagerInterface {
    return new ExecutionState(this.#view);
  }

  #loadAccount(address: Uint8Array): Account | undefined {
    const stored = this.#view.findAccount(address);
    if (stored === undefined) return undefined;
    return new Account(stored.nonce, stored.balance, stored.storageRoot, stored.codeHash);
  }

  #slotsOf(address: Uint8Array): Map<string, Uint8Array> {
    const key = toLatin1(address);
    const slots = this.#storage.get(key) ?? new Map<string, Uint8Array>();
    this.#storage.set(key, slots);
    return slots;
  }

  /** Sets an entry. `revert` can undo this only within a checkpoint. */
  #write<Value>(map: Map<string, Value>, key: string, value: Value): void {
    if (this.#checkpoints.length > 0) this.#undo.push(undoOf(map, key));
    map.set(key, value);
  }
}

/** Returns a function that restores the present value of an entry. */
function undoOf<Value>(map: Map<string, Value>, key: string): () => void {
  if (!map.has(key)) return () => void map.delete(key);
  const before = map.get(key) as Value; // It is there, so it is a Value, which may be undefined.
  return () => void map.set(key, before);
}

function copyAccount(account: Account): Account {
  return new Account(account.nonce, account.balance, account.storageRoot, account.codeHash);
}
