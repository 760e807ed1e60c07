import { BrokerError, type OperationResult } from "@stele/wire";
import {
  proofsRunningMax,
  readsRunningMax,
  receiverOrdersRunningMax,
  searchesRunningMax,
  turnTimeoutMs,
} from "../limits.ts";
import {
  type NonPublishOperation,
  type OperationContext,
  operationHandlers,
  type ParameterReader,
} from "./operation-handlers.ts";
import { Turns } from "./turns.ts";

/** Who waits for the answer to a call. */
interface Waiting extends Pick<OperationContext, "caller"> {
  /** Called when the call's turn comes: is the answer still wanted? Left out if it always is. */
  readonly isWaiting?: (() => boolean) | undefined;
}

/** One call of an operation. */
export interface OperationCall extends OperationContext, Waiting {
  readonly reader: ParameterReader;
}

/** Kinds of expensive calls, each with its own limit: look-ups of events and topics, proofs, work on many subscriptions, orders that wait for receivers. */
export type Expense = "read" | "proof" | "search" | "receiver";

const expenses: { readonly [Name in NonPublishOperation]?: Expense } = {
  getEvent: "read",
  getProof: "proof",
  list: "read",
};

/** Runs operations. Expensive ones take turns, so that a tenant with thousands of calls at once does not delay the others. */
export class OperationRunner {
  readonly #turns: { readonly [Kind in Expense]: Turns } = {
    read: new Turns(readsRunningMax),
    proof: new Turns(proofsRunningMax),
    search: new Turns(searchesRunningMax),
    receiver: new Turns(receiverOrdersRunningMax),
  };

  /** @throws BrokerError of the operation; 200300 if its turn did not come in time, or if nobody waits any more. With 200300, the operation did not run. */
  async run<Name extends NonPublishOperation>(name: Name, call: OperationCall): Promise<OperationResult<Name>> {
    const expense = expenses[name];
    const task = (): Promise<OperationResult<Name>> => operationHandlers[name](call, call.reader);
    return expense === undefined ? task() : this.runInTurn(expense, call, task);
  }

  /** Runs a task when its turn comes. @throws BrokerError 200300 if the turn did not come in time, or if nobody waits any more. The task then did not run. */
  async runInTurn<Result>(expense: Expense, call: Waiting, task: () => Promise<Result>): Promise<Result> {
    const { caller, isWaiting = () => true } = call;
    const entered = this.#turns[expense].enter(caller);
    const leave = entered instanceof Promise ? await entered : entered;
    if (leave === undefined)
      throw new BrokerError("busy", { details: `the call's turn did not come within ${turnTimeoutMs} ms` });
    try {
      if (caller.signal.aborted || !isWaiting())
        throw new BrokerError("busy", { details: "the caller no longer waits" });
      return await task();
    } finally {
      leave();
    }
  }
}
