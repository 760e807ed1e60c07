import { BrokerError, type OperationResult } from "@stele/wire";
import {
  proofsRunningMax,
  readsRunningMax,
  receiverOrdersRunningMax,
  searchesRunningMax,
  turnTimeoutMs,
} from "../limits.ts";
import {
  type AskedOperation,
  type OperationContext,
  operationHandlers,
  type ParameterReader,
} from "./operation-handlers.ts";
import { Turns } from "./turns.ts";

/** Who waits for the answer to a call. */
interface Waiting extends Pick<OperationContext, "caller"> {
  /** Asked when the turn of a call has come: whether its answer is still wanted. Always when left out. */
  readonly isWaiting?: (() => boolean) | undefined;
}

/** One call of an operation. */
export interface OperationCall extends OperationContext, Waiting {
  readonly reader: ParameterReader;
}

/** What a call takes its turns for: look-ups of events and topics, proofs, work on many subscriptions, or orders that wait for receivers. */
export type Expense = "read" | "proof" | "search" | "receiver";

const expenses: { readonly [Name in AskedOperation]?: Expense } = { getEvent: "read", getProof: "proof", list: "read" };

/** Runs operations. Expensive ones take turns, so that a connection with a thousand calls at once does not hold up the others. */
export class OperationRunner {
  readonly #turns: { readonly [Kind in Expense]: Turns } = {
    read: new Turns(readsRunningMax),
    proof: new Turns(proofsRunningMax),
    search: new Turns(searchesRunningMax),
    receiver: new Turns(receiverOrdersRunningMax),
  };

  /** @throws BrokerError of the operation; 200300 when its turn did not come in time, and then it was not run. */
  async run<Name extends AskedOperation>(name: Name, call: OperationCall): Promise<OperationResult<Name>> {
    const expense = expenses[name];
    const task = (): Promise<OperationResult<Name>> => operationHandlers[name](call, call.reader);
    return expense === undefined ? task() : this.runInTurn(expense, call, task);
  }

  /** Runs a task when its turn has come. @throws BrokerError 200300 when that did not come in time, or nobody waits any more; the task was not run then. */
  async runInTurn<Result>(expense: Expense, call: Waiting, task: () => Promise<Result>): Promise<Result> {
    const { caller, isWaiting = () => true } = call;
    const entered = this.#turns[expense].enter(caller);
    const leave = entered instanceof Promise ? await entered : entered;
    if (leave === undefined) throw new BrokerError("busy", { details: `its turn did not come in ${turnTimeoutMs} ms` });
    try {
      if (caller.signal.aborted || !isWaiting())
        throw new BrokerError("busy", { details: "the caller no longer waits" });
      return await task();
    } finally {
      leave();
    }
  }
}
