import type { ExecutionState } from "../../state/execution-state.ts";
import { EMPTY_CODE_HASH } from "../../state/account.ts";
import { isSameBytes } from "../../lib/bytes.ts";
import type { EvmBlock } from "../evm.ts";
import { type Execution, type Message, refundOf } from "../execute.ts";
import { Machine } from "./machine.ts";
import { Programs } from "./program.ts";
import { run } from "./run.ts";
import { fromBytes } from "./word.ts";

/** What a message does, before any of it is written. */
export interface Plan {
  readonly execution: Execution;
  /** The contract that ran, the only one whose storage changes. */
  readonly address: Uint8Array;
  readonly slots: readonly (readonly [slot: Uint8Array, value: Uint8Array])[];
}

/** Runs calls of contracts that reach no other account, some twenty times as fast as the EVM and with the same result. */
export class OwnExecution {
  readonly #chainId: number;
  readonly #state: ExecutionState;
  readonly #programs = new Programs();

  constructor(chainId: number, state: ExecutionState) {
    this.#chainId = chainId;
    this.#state = state;
  }

  /** What a message does; undefined where only the EVM can tell. Changes nothing. */
  plan(message: Message, block: EvmBlock): Plan | undefined {
    const { to: address, value } = message;
    const gas = message.gasLimit - message.intrinsicGas;
    if (address === undefined || value !== 0n || gas > Number.MAX_SAFE_INTEGER) return undefined;
    const program = this.#findProgram(address);
    if (program === undefined) return undefined;
    const machine = new Machine({
      message,
      address,
      block,
      chainId: this.#chainId,
      program,
      gas: Number(gas),
      readSlot: (slot) => this.#state.readStorage(address, slot),
    });
    for (const entry of message.accessList) {
      if (isSameBytes(entry.address, address)) for (const slot of entry.slots) machine.slots.warm(fromBytes(slot));
    }
    if (run(machine) !== "success") return undefined;
    return { execution: toExecution(machine, message), address, slots: [...machine.slots.changes()] };
  }

  #findProgram(address: Uint8Array) {
    const account = this.#state.readAccount(address);
    if (account === undefined || isSameBytes(account.codeHash, EMPTY_CODE_HASH)) return undefined;
    const { codeHash } = account;
    return this.#programs.get(codeHash, () => this.#state.readCode(codeHash));
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
