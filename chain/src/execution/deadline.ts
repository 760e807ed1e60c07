import type { EVMOpts } from "@ethereumjs/evm";
import { serverError } from "../rpc-error.ts";

const JUMPDEST = 0x5b;
/** JUMPDESTs between two readings of the clock. */
const LANDINGS_PER_CHECK = 1_024;

type CustomOpcode = NonNullable<EVMOpts["customOpcodes"]>[number];

/** Ends calls that run too long. The JUMPDEST instruction checks the deadline, because every loop passes one. */
export class Deadline {
  readonly #timeMsMax: number;
  #endsAt = Number.POSITIVE_INFINITY;
  #landings = 0;

  constructor(timeMsMax: number) {
    this.#timeMsMax = timeMsMax;
  }

  restart(): void {
    this.#endsAt = performance.now() + this.#timeMsMax;
    this.#landings = 0;
  }

  /** The JUMPDEST instruction, which otherwise does nothing, with a check of the deadline. */
  opcode(): CustomOpcode {
    return { opcode: JUMPDEST, opcodeName: "JUMPDEST", baseFee: 1, logicFunction: () => this.#check() };
  }

  #check(): void {
    this.#landings += 1;
    if (this.#landings % LANDINGS_PER_CHECK !== 0 || performance.now() < this.#endsAt) return;
    throw serverError(`execution aborted (timeout = ${this.#timeMsMax}ms)`);
  }
}
