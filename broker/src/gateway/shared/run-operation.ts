import { BrokerError, type OperationResult } from "@stele/wire";
import { proofsRunningMax, readsRunningMax, turnTimeoutMs } from "../limits.ts";
import {
  type AskedOperation,
  type OperationContext,
  operationHandlers,
  type ParameterReader,
} from "./operation-handlers.ts";
import { type Leave, Turns } from "./turns.ts";

/** One call of an operation. */
export interface OperationCall extends OperationContext {
  readonly reader: ParameterReader;
  /** Asked when the turn of a call has come: whether its answer is still wanted. Always when left out. */
  readonly isWaiting?: (() => boolean) | undefined;
}

/** Runs operations. Expensive reads take turns, so that a connection with a thousand calls at once does not hold up the others. */
export class OperationRunner {
  readonly #reads = new Turns(readsRunningMax);
  readonly #turns: { readonly [Name in AskedOperation]?: Turns } = {
    getEvent: this.#reads,
    getProof: new Turns(proofsRunningMax),
    list: this.#reads,
  };

  /** @throws BrokerError of the operation; 200300 when its turn did not come in time, and then it was not run. */
  async run<Name extends AskedOperation>(name: Name, call: OperationCall): Promise<OperationResult<Name>> {
    const turns = this.#turns[name];
    if (turns === undefined) return operationHandlers[name](call, call.reader);
    const entered = turns.enter(call.caller);
    const leave = entered instanceof Promise ? await entered : entered;
    if (leave === undefined) throw new BrokerError("busy", { details: `its turn did not come in ${turnTimeoutMs} ms` });
    return runInTurn(name, call, leave);
  }
}

async function runInTurn<Name extends AskedOperation>(
  name: Name,
  call: OperationCall,
  leave: Leave,
): Promise<OperationResult<Name>> {
  try {
    const { caller, isWaiting = () => true } = call;
    if (caller.signal.aborted || !isWaiting()) throw new BrokerError("busy", { details: "the caller no longer waits" });
    return await operationHandlers[name](call, call.reader);
  } finally {
    leave();
  }
}
