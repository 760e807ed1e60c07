import type { Broker } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import {
  chainCallsWaitingMax,
  chainComputationsRunningMax,
  chainLookUpsRunningMax,
  chainPauseFromMs,
  chainWaitTimeoutMs,
} from "../limits.ts";
import type { RpcRequest } from "../shared/rpc/endpoint.ts";
import type { RpcOutcome, RpcParams, RpcText } from "../shared/rpc/message.ts";
import { toChainError, toMethodRefusal, tooBusy, toProtocolError } from "./chain-error.ts";
import { Gate } from "./gate.ts";
import { type Cost, readMethods } from "./read-methods.ts";

/** Answers requests with JSON text. A refusal is an error in the shape of EIP-1193: geth's code, and data if there is any. */
export interface ChainSource {
  /**
   * Before it settles, calls `onWorked` with the milliseconds for which it worked on this request alone. Does not call `onWorked` if the request never had its
   * turn.
   */
  read(
    request: { readonly method: string; readonly params: readonly unknown[] },
    onWorked: (workedMs: number) => void,
  ): Promise<string>;
}

export interface ChainReaderOptions {
  readonly broker: Pick<Broker, "authorize" | "authenticate">;
  readonly source: ChainSource;
  readonly logger: Logger;
}

const waiting = { waitingMax: chainCallsWaitingMax, waitTimeoutMs: chainWaitTimeoutMs };

/**
 * Reads the chain, a bounded number of calls at once. A thread beside the chain runs all calls one at a time, so a look-up may wait for a computation. After a
 * long computation, no other computation starts for the same time, so that look-ups of other clients and publishes get their share.
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

  /** Refuses all waiting and later calls, so that a server that closes need not wait for them. */
  close(): void {
    for (const gate of Object.values(this.#gates)) gate.close();
  }

  /** Does not run the call if its caller has left before its turn comes. */
  async call(request: RpcRequest): Promise<RpcOutcome | RpcText> {
    const { broker, logger } = this.#options;
    const { method, caller } = request;
    try {
      broker.authorize(caller, "chain");
      return await this.#read(request);
    } catch (error) {
      return { error: toChainError(error, { method, logger }) };
    }
  }

  async #read({ method, params, caller, isWaiting }: RpcRequest): Promise<RpcOutcome | RpcText> {
    const cost = readMethods.get(method);
    if (cost === undefined) return { error: toMethodRefusal(method) };
    if (!isPositional(params)) return { error: toProtocolError("invalidParams", "parameters go by position") };
    const leave = await this.#gates[cost].enter();
    if (leave === undefined) return { error: tooBusy };
    let workedMs = 0;
    const onWorked = (tookMs: number): void => {
      workedMs = tookMs;
    };
    try {
      if (caller.signal.aborted || isWaiting?.() === false) return { error: tooBusy };
      return { json: await this.#options.source.read({ method, params }, onWorked) };
    } finally {
      leave(workedMs);
    }
  }
}

function isPositional(params: RpcParams): params is readonly unknown[] {
  return Array.isArray(params);
}
