import { keccak256 } from "@stele/eth/node";
import { rememberedKeccak } from "../../lib/remembered-keccak.ts";
import type { ExecutionState } from "../../state/execution-state.ts";
import { INITCODE_BYTES_MAX } from "../gas.ts";
import { type Creation, type Creator, Machine, type CallContext } from "./machine.ts";
import type { Programs } from "./program.ts";
import { run } from "./run.ts";

/** A contract that a message creates. */
export interface CreatedContract {
  readonly address: Uint8Array;
  readonly code: Uint8Array;
}

/** Nonce of a new contract (EIP-161). */
export const CREATED_NONCE = 1n;

const DEPOSIT_BYTE_GAS = 200;
/** Longest code of a contract, in bytes (EIP-170). */
const CODE_BYTES_MAX = 24_576;
/** No contract's code may begin with this byte (EIP-3541). */
const RESERVED_BYTE = 0xef;
const ADDRESS_OFFSET = 12;
/** An account's nonce stays below this (EIP-2681). */
const NONCE_END = 2n ** 64n - 1n;
const ADDRESS_PREFIX = Uint8Array.of(0xff);
const NO_INPUT = Buffer.alloc(0);

export interface CreationsOptions {
  /** Call context of the creating contract. */
  readonly context: CallContext;
  /** Nonce of the creating contract before these creations. */
  readonly nonce: bigint;
  readonly state: ExecutionState;
  readonly programs: Programs;
}

/** The contracts that one message creates with CREATE2. Their addresses become warm (EIP-2929), but no instruction of this interpreter depends on that. */
export class Creations implements Creator {
  readonly #options: CreationsOptions;
  readonly #addresses = new Set<string>();
  readonly made: CreatedContract[] = [];

  constructor(options: CreationsOptions) {
    this.#options = options;
  }

  /** Nonce of the creating contract after these creations. */
  get nonce(): bigint {
    return this.#options.nonce + BigInt(this.made.length);
  }

  /**
   * Creates a contract with init code that succeeds, touches no storage, logs nothing and creates nothing. Returns undefined in every other case, so that the
   * EVM runs the message.
   */
  create({ initCode, salt, gas }: Creation): { readonly address: Uint8Array; readonly gasUsed: number } | undefined {
    if (initCode.length > INITCODE_BYTES_MAX || this.nonce >= NONCE_END) return undefined;
    const initCodeHash = rememberedKeccak(initCode);
    const address = this.#addressOf(salt, initCodeHash);
    if (!this.#isFree(address)) return undefined;
    const { context, programs } = this.#options;
    const machine = new Machine({
      ...context,
      address,
      caller: context.address,
      input: NO_INPUT,
      program: programs.get(initCodeHash, () => Buffer.from(initCode)),
      gas,
      readSlot: () => NO_INPUT,
    });
    const isRun = run(machine) === "success" && machine.slots.isUntouched && machine.logs.length === 0;
    const code = machine.output;
    if (!isRun || code.length > CODE_BYTES_MAX || code[0] === RESERVED_BYTE) return undefined;
    if (!machine.charge(DEPOSIT_BYTE_GAS * code.length)) return undefined;
    this.made.push({ address, code });
    return { address, gasUsed: gas - machine.gas };
  }

  /** The address of a new contract (EIP-1014). */
  #addressOf(salt: Uint8Array, initCodeHash: Uint8Array): Uint8Array {
    const { address } = this.#options.context;
    return keccak256(ADDRESS_PREFIX, address, salt, initCodeHash).subarray(ADDRESS_OFFSET);
  }

  /** Whether the address has no account, and this message has not tried it before. */
  #isFree(address: Uint8Array): boolean {
    const key = Buffer.from(address).toString("latin1");
    const isFree = !this.#addresses.has(key) && this.#options.state.readAccount(address) === undefined;
    this.#addresses.add(key);
    return isFree;
  }
}
