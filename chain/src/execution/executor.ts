import type { EVM } from "@ethereumjs/evm";
import { Account } from "@ethereumjs/util";
import { COINBASE } from "../blocks/header.ts";
import type { ExecutionState } from "../state/execution-state.ts";
import { describeDifference } from "./compare.ts";
import type { EvmBlock } from "./evm.ts";
import { type Execution, execute, type Message } from "./execute.ts";
import { CREATED_NONCE } from "./interpreter/creations.ts";
import { OwnExecution, type Plan } from "./interpreter/own-execution.ts";

export interface ExecutorOptions {
  readonly chainId: number;
  readonly evm: EVM;
  readonly state: ExecutionState;
  /** One in so many transactions that this chain runs by its own interpreter is run by the EVM too. */
  readonly checkInterval: number;
  /** The own interpreter and the EVM disagreed. The EVM's result counts, and the own interpreter is off from here on. */
  readonly onMismatch: (error: Error) => void;
}

/** Runs the transactions of blocks: by the own interpreter where it can, by the EVM otherwise. */
export class Executor {
  readonly #options: ExecutorOptions;
  #own: OwnExecution | undefined;
  /** The first transaction of a process is checked. */
  #untilCheck = 1;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#own = new OwnExecution(options.chainId, options.state);
  }

  /** As `execute`. */
  execute(message: Message, block: EvmBlock): Execution | Promise<Execution> {
    const { evm } = this.#options;
    const plan = this.#own?.plan(message, block);
    if (plan === undefined) return execute(evm, message, block);
    this.#untilCheck -= 1;
    if (this.#untilCheck === 0) return this.#check(plan, message, block);
    this.#carryOut(plan, message, block);
    return plan.execution;
  }

  async #check(plan: Plan, message: Message, block: EvmBlock): Promise<Execution> {
    const { evm, state, checkInterval, onMismatch } = this.#options;
    this.#untilCheck = checkInterval;
    const before = state.copyStorage(plan.address);
    const execution = await execute(evm, message, block);
    const difference = describeDifference({ plan, execution, before, state });
    if (difference === undefined) return execution;
    this.#own = undefined;
    onMismatch(
      new Error(
        `The chain's own interpreter disagrees with the EVM on ${difference}. The EVM runs all transactions until the next start.`,
      ),
    );
    return execution;
  }

  #carryOut({ execution, address, slots, nonce, created }: Plan, message: Message, { header }: EvmBlock): void {
    const { state } = this.#options;
    const { from, gasPrice } = message;
    const caller = state.readAccount(from) ?? new Account();
    const balance = caller.balance - execution.gasUsed * gasPrice;
    state.changeAccount(from, { nonce: caller.nonce + 1n, balance });
    for (const [slot, value] of slots) state.writeStorage(address, slot, value);
    if (created.length > 0) state.changeAccount(address, { nonce });
    for (const contract of created) {
      state.changeAccount(contract.address, { nonce: CREATED_NONCE });
      if (contract.code.length > 0) state.writeCode(contract.address, contract.code);
    }
    const tip = gasPrice - header.baseFeePerGas;
    if (tip > 0n) this.#credit(COINBASE, tip * execution.gasUsed);
  }

  #credit(address: Uint8Array, amount: bigint): void {
    const { state } = this.#options;
    const before = state.readAccount(address)?.balance ?? 0n;
    state.changeAccount(address, { balance: before + amount });
  }
}
