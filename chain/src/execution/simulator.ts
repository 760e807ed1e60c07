import type { EVM } from "@ethereumjs/evm";
import { Account } from "@ethereumjs/util";
import { toHex } from "@stele/eth/node";
import type { Header } from "../blocks/header.ts";
import { ProviderRpcError, RPC_ERROR_CODES, serverError } from "../rpc-error.ts";
import { ExecutionState } from "../state/execution-state.ts";
import type { StateView } from "../state/state-view.ts";
import { Deadline } from "./deadline.ts";
import { type BlockHashReader, createChainEvm, toEvmBlock } from "./evm.ts";
import { type Execution, execute, type Message } from "./execute.ts";
import { describeRevert } from "./revert-reason.ts";
import { applyOverrides, type StateOverrides } from "./state-overrides.ts";

/** A message and the state that it runs on. */
export interface Simulation {
  readonly message: Message;
  readonly view: StateView;
  readonly header: Header;
  readonly overrides?: StateOverrides;
}

export interface SimulatorOptions {
  readonly chainId: number;
  readonly view: StateView;
  readonly readBlockHash: BlockHashReader;
  /** Longest that one call or estimate may run, in milliseconds. */
  readonly timeMsMax: number;
}

/** An estimate may be too high by one part in this many: geth's 1.5 %. */
const ESTIMATE_ERROR_PARTS = 64n;

/** Runs messages on the newest or a past state, one at a time, and discards their changes. */
export class Simulator {
  readonly #evm: EVM;
  readonly #state: ExecutionState;
  readonly #deadline: Deadline;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(evm: EVM, state: ExecutionState, deadline: Deadline) {
    this.#evm = evm;
    this.#state = state;
    this.#deadline = deadline;
  }

  static async create({ chainId, view, readBlockHash, timeMsMax }: SimulatorOptions): Promise<Simulator> {
    const state = new ExecutionState(view);
    const deadline = new Deadline(timeMsMax);
    return new Simulator(await createChainEvm({ chainId, state, readBlockHash, deadline }), state, deadline);
  }

  /**
   * The output of a call.
   * @throws ProviderRpcError with geth's message if the call fails.
   */
  call(simulation: Simulation): Promise<Uint8Array> {
    return this.#inTurn(async () => unwrap(await this.#try(simulation)).output);
  }

  /** The least gas limit with which a message succeeds, within geth's tolerance. */
  estimate(simulation: Simulation): Promise<bigint> {
    return this.#inTurn(() => this.#estimate(simulation));
  }

  async #estimate(simulation: Simulation): Promise<bigint> {
    const most = simulation.message.gasLimit;
    const first = await this.#try(simulation);
    if (first.failure === "out of gas") throw serverError(`gas required exceeds allowance (${most})`);
    let enough = most;
    let tooLittle = unwrap(first).gasUsed - 1n;
    // The gas used, corrected for the 63/64 rule of calls, is nearly always enough.
    let guess = ((tooLittle + 1n) * 64n) / 63n + 2_300n;
    if (await this.#isEnough(simulation, tooLittle + 1n)) return tooLittle + 1n;
    while (enough - tooLittle > 1n && (enough - tooLittle) * ESTIMATE_ERROR_PARTS > enough) {
      const limit = guess > tooLittle && guess < enough ? guess : (enough + tooLittle) / 2n;
      if (await this.#isEnough(simulation, limit)) enough = limit;
      else tooLittle = limit;
      guess = 0n;
    }
    return enough;
  }

  async #isEnough(simulation: Simulation, gasLimit: bigint): Promise<boolean> {
    const { message } = simulation;
    if (gasLimit < message.intrinsicGas) return false;
    return (await this.#try({ ...simulation, message: { ...message, gasLimit } })).failure === undefined;
  }

  async #try({ message, view, header, overrides }: Simulation): Promise<Execution> {
    this.#state.reset(view);
    if (overrides !== undefined) await applyOverrides(this.#state, overrides);
    if (message.gasLimit < message.intrinsicGas) {
      throw serverError(`intrinsic gas too low: have ${message.gasLimit}, want ${message.intrinsicGas}`);
    }
    await this.#checkFunds(message);
    const baseFeePerGas = message.gasPrice === 0n ? 0n : header.baseFeePerGas;
    return execute(this.#evm, message, toEvmBlock({ ...header, baseFeePerGas }));
  }

  /** Checks that the sender can pay. A call without a gas price costs nothing, but its sender must have the value that the call sends. */
  async #checkFunds({ from, gasLimit, gasPrice, value }: Message): Promise<void> {
    const account = this.#state.readAccount(from) ?? new Account();
    const cost = gasLimit * gasPrice + value;
    if (account.balance < cost) {
      throw serverError(
        `insufficient funds for gas * price + value: address ${toHex(from)} have ${account.balance} want ${cost}`,
      );
    }
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const timed = (): Promise<Result> => {
      this.#deadline.restart();
      return work();
    };
    const result = this.#last.then(timed, timed);
    this.#last = result;
    return result;
  }
}

function unwrap(execution: Execution): Execution {
  if (execution.failure === undefined) return execution;
  if (execution.failure !== "revert") throw serverError(execution.failure);
  const reason = describeRevert(execution.output);
  throw new ProviderRpcError(RPC_ERROR_CODES.executionReverted, `execution reverted${reason}`, {
    data: toHex(execution.output),
  });
}
