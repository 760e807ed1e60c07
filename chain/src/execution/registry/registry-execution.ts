import { emptyBytes, toBuffer } from "@stele/eth/node";
import { Lru } from "../../lib/lru.ts";
import { PROGRAM_CACHE_CONTRACTS_MAX } from "../../limits.ts";
import type { ExecutionState } from "../../state/execution-state.ts";
import type { EvmBlock } from "../evm.ts";
import type { Message } from "../execute.ts";
import type { Plan } from "../interpreter/own-execution.ts";
import { planPublish } from "./plan-publish.ts";
import { isRegistry, type RegistryCode } from "./registry-code.ts";

/** Executes `publish` of the known registry without interpreting its instructions, with the same result. */
export class RegistryExecution {
  readonly #state: ExecutionState;
  readonly #code: RegistryCode;
  /** By the hash of a contract's code: whether it is the code of the registry. */
  readonly #known = new Lru<string, boolean>({ entriesMax: PROGRAM_CACHE_CONTRACTS_MAX });

  constructor(state: ExecutionState, code: RegistryCode) {
    this.#state = state;
    this.#code = code;
  }

  /** Computes the effects of a `publish` without applying them; undefined if the interpreter must run the message, see {@link planPublish}. */
  plan(message: Message, { header }: EvmBlock): Plan | undefined {
    const { to: registry, value } = message;
    if (registry === undefined || value !== 0n) return undefined;
    const account = this.#state.readAccount(registry);
    if (account === undefined || !this.#isRegistry(account.codeHash)) return undefined;
    const publish = planPublish({
      message,
      registry,
      blockNumber: Number(header.number),
      readSlot: (slot) => this.#state.readStorage(registry, slot),
      publishGas: this.#code.publishGas,
    });
    if (publish === undefined) return undefined;
    const { gas, logs, slots } = publish;
    const gasUsed = message.intrinsicGas + BigInt(gas);
    const execution = { gasUsed, logs, output: emptyBytes, failure: undefined };
    return { execution, address: registry, slots, nonce: account.nonce, created: [] };
  }

  #isRegistry(codeHash: Uint8Array): boolean {
    const key = toBuffer(codeHash).toString("latin1");
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = isRegistry(this.#state.readCode(codeHash), this.#code);
    this.#known.set(key, found);
    return found;
  }
}
