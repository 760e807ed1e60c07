import { isSameBytes, toBuffer } from "@stele/eth/node";
import { EMPTY_CODE_HASH } from "../../state/account.ts";
import type { ExecutionState } from "../../state/execution-state.ts";
import type { EvmBlock } from "../evm.ts";
import { type Execution, type Message, refundOf } from "../execute.ts";
import { type CreatedContract, Creations } from "./creations.ts";
import { Machine } from "./machine.ts";
import { Programs } from "./program.ts";
import { run } from "./run.ts";
import { fromBytes } from "./word.ts";

/** The effects of a message, before any of them is written. */
export interface Plan {
  readonly execution: Execution;
  /** The contract that ran, the only one whose storage changes. */
  readonly address: Uint8Array;
  readonly slots: readonly (readonly [slot: Uint8Array, value: Uint8Array])[];
  /** Nonce of the contract that ran, after it created the contracts in `created`. */
  readonly nonce: bigint;
  readonly created: readonly CreatedContract[];
}

/** Runs a call to a contract if the contract calls no other account. Leaves calls that fail or send value to the EVM (see `plan`). */
export class OwnExecution {
  readonly #chainId: number;
  readonly #state: ExecutionState;
  readonly #programs = new Programs();

  constructor(chainId: number, state: ExecutionState) {
    this.#chainId = chainId;
    this.#state = state;
  }

  /** The effects of a message; undefined if the EVM must run it. Changes nothing. */
  plan(message: Message, block: EvmBlock): Plan | undefined {
    const { to: address, value } = message;
    const gas = message.gasLimit - message.intrinsicGas;
    if (address === undefined || value !== 0n || gas > Number.MAX_SAFE_INTEGER) return undefined;
    const account = this.#state.readAccount(address);
    if (account === undefined || isSameBytes(account.codeHash, EMPTY_CODE_HASH)) return undefined;
    const { codeHash, nonce } = account;
    const context = { message, address, block, chainId: this.#chainId };
    const creations = new Creations({ context, nonce, state: this.#state, programs: this.#programs });
    const machine = new Machine({
      ...context,
      program: this.#programs.get(codeHash, () => this.#state.readCode(codeHash)),
      gas: Number(gas),
      caller: message.from,
      input: toBuffer(message.data),
      readSlot: (slot) => this.#state.readStorage(address, slot),
      creator: creations,
    });
    for (const entry of message.accessList) {
      if (isSameBytes(entry.address, address)) for (const slot of entry.slots) machine.slots.warm(fromBytes(slot));
    }
    if (run(machine) !== "success") return undefined;
    const slots = [...machine.slots.changes()];
    return {
      execution: toExecution(machine, message),
      address,
      slots,
      nonce: creations.nonce,
      created: creations.made,
    };
  }
}

function toExecution(machine: Machine, message: Message): Execution {
  const spent = message.gasLimit - BigInt(machine.gas);
  return {
    gasUsed: spent - refundOf(spent, BigInt(machine.slots.refund)),
    logs: machine.logs,
    output: machine.output,
    failure: undefined,
  };
}
