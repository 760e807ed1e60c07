import type { Logger } from "../../lib/logger.ts";
import {
  chainCallsWaitingMax,
  chainComputationsRunningMax,
  chainLookUpsRunningMax,
  chainParamsLevelsMax,
  chainPauseFromMs,
  chainWaitTimeoutMs,
} from "../limits.ts";
import type { RpcOutcome, RpcParams } from "../shared/rpc/message.ts";
import { toChainError, toMethodRefusal, tooBusy, toProtocolError } from "./chain-error.ts";
import { Gate } from "./gate.ts";
import { type Cost, readMethods } from "./read-methods.ts";

/** Answers requests as EIP-1193 has it. A refusal is an error with geth's code, and with data where there is some. */
export interface ChainProvider {
  request(args: { readonly method: string; readonly params: readonly unknown[] }): Promise<unknown>;
}

export interface ChainReaderOptions {
  readonly provider: ChainProvider;
  readonly logger: Logger;
}

const waiting = { waitingMax: chainCallsWaitingMax, waitTimeoutMs: chainWaitTimeoutMs };

/**
 * Reads the chain for anyone, a bounded number of calls at once. The chain runs one thing at a time, and blocks wait behind calls: between two
 * long computations it therefore has as long for the blocks as the first one took.
 */
export class ChainReader {
  readonly #options: ChainReaderOptions;
  readonly #gates: Readonly<Record<Cost, Gate>> = {
    "look-up": new Gate({ ...waiting, runningMax: chainLookUpsRunningMax }),
    computation: new Gate({ ...waiting, runningMax: chainComputationsRunningMax, pauseFromMs: chainPauseFromMs }),
  };

  constructor(options: ChainReaderOptions) {
    this.#options = options;
  }

  async call(method: string, params: RpcParams): Promise<RpcOutcome> {
    const cost = readMethods.get(method);
    if (cost === undefined) return { error: toMethodRefusal(method) };
    if (!isPositional(params)) return { error: toProtocolError("invalidParams", "parameters go by position") };
    if (isDeeperThan(chainParamsLevelsMax, params))
      return { error: toProtocolError("invalidParams", `parameters nest at most ${chainParamsLevelsMax} levels deep`) };
    const leave = await this.#gates[cost].enter();
    if (leave === undefined) return { error: tooBusy };
    try {
      return { result: (await this.#options.provider.request({ method, params })) ?? null };
    } catch (error) {
      return { error: toChainError(error, { method, logger: this.#options.logger }) };
    } finally {
      leave();
    }
  }
}

/** The chain's thread gets a copy, and copying what is nested without bound fails. */
function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member));
}

function isPositional(params: RpcParams): params is readonly unknown[] {
  return Array.isArray(params);
}
