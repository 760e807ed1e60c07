import type { EVM } from "@ethereumjs/evm";
import { Account } from "@ethereumjs/util";
import { COINBASE } from "../blocks/header.ts";
import type { ExecutionState } from "../state/execution-state.ts";
import { describeDifference } from "./compare.ts";
import type { EvmBlock } from "./evm.ts";
import { type Execution, execute, type Message } from "./execute.ts";
import { CREATED_NONCE } from "./interpreter/creations.ts";
import { OwnExecution, type Plan } from "./interpreter/own-execution.ts";
import type { RegistryCode } from "./registry/registry-code.ts";
import { RegistryExecution } from "./registry/registry-execution.ts";

export interface ExecutorOptions {
  readonly chainId: number;
  readonly evm: EVM;
  readonly state: ExecutionState;
  /** The registry whose `publish` is executed without interpreting it; undefined for none. */
  readonly registryCode?: RegistryCode | undefined;
  /** To check the chain's own code, the EVM repeats one in this many of the transactions that this code runs. */
  readonly checkInterval: number;
  /** The chain's own code and the EVM disagreed. The EVM's result counts, and the EVM runs everything from here on. */
  readonly onMismatch: (error: Error) => void;
}

/** Code of the chain that runs some messages instead of the EVM. */
interface Planner {
  plan(message: Message, block: EvmBlock): Plan | undefined;
}

/** A planner, and how many of its transactions are left until the EVM checks one. */
interface CheckedPlanner {
  readonly planner: Planner;
  untilCheck: number;
}

/** Runs the transactions of blocks: with the chain's own code where possible, otherwise with the EVM. */
export class Executor {
  readonly #options: ExecutorOptions;
  /** The fastest first. */
  #planners: readonly CheckedPlanner[];

  constructor(options: ExecutorOptions) {
    this.#options = options;
    const { chainId, state, registryCode } = options;
    const registry = registryCode === undefined ? [] : [new RegistryExecution(state, registryCode)];
    // The EVM checks each planner's first transaction of a process.
    this.#planners = [...registry, new OwnExecution(chainId, state)].map((planner) => ({ planner, untilCheck: 1 }));
  }

  /** Runs a message. The caller has checked nonce, balance and intrinsic gas. */
  execute(message: Message, block: EvmBlock): Execution | Promise<Execution> {
    for (const checked of this.#planners) {
      const plan = checked.planner.plan(message, block);
      if (plan === undefined) continue;
      checked.untilCheck -= 1;
      if (checked.untilCheck > 0) return this.#carryOut(plan, message, block);
      checked.untilCheck = this.#options.checkInterval;
      return this.#check(plan, message, block);
    }
    return execute(this.#options.evm, message, block);
  }

  async #check(plan: Plan, message: Message, block: EvmBlock): Promise<Execution> {
    const { evm, state, onMismatch } = this.#options;
    const before = state.copyStorage(plan.address);
    const execution = await execute(evm, message, block);
    const difference = describeDifference({ plan, execution, before, state });
    if (difference === undefined) return execution;
    this.#planners = [];
    onMismatch(
      new Error(
        `The chain's own code disagrees with the EVM on ${difference}. The EVM runs all transactions until the next start.`,
      ),
    );
    return execution;
  }

  #carryOut({ execution, address, slots, nonce, created }: Plan, message: Message, { header }: EvmBlock): Execution {
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
    return execution;
  }

  #credit(address: Uint8Array, amount: bigint): void {
    const { state } = this.#options;
    const before = state.readAccount(address)?.balance ?? 0n;
    state.changeAccount(address, { balance: before + amount });
  }
}
