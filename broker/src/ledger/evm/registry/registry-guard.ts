import { BrokerError, errorCatalogue } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { Wakeup } from "../../wakeup.ts";
import { isRegistry } from "./find-registry.ts";
import type { Rpc } from "../endpoint/rpc.ts";

const pauseMs = 1000;

export interface RegistryGuardOptions {
  readonly rpc: Rpc;
  readonly address: Address;
  /** The signer's address. */
  readonly signer: Address;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether the chain is lower than what was read of it: then it may come back with the registry. */
  readonly isBehind: () => boolean;
  /** Deploys it again. @throws BrokerError with the reason when that cannot be done. */
  readonly restore: () => Promise<void>;
}

/** Looks whether the registry is there when there is a doubt, and has it back where the chain has lost it. */
export class RegistryGuard {
  readonly #options: RegistryGuardOptions;
  readonly #stopping = new AbortController();
  #outage: Outage | undefined;
  #running: Promise<void> | undefined;

  constructor(options: RegistryGuardOptions) {
    this.#options = options;
  }

  /** Why nothing can be written; undefined while the registry is there, as far as is known. */
  get outage(): Outage | undefined {
    return this.#outage;
  }

  /** The chain was reorganised, or a call found no registry. */
  check(): void {
    if (this.#stopping.signal.aborted) return;
    this.#running ??= this.#run();
  }

  /** To be called when a call found no registry; answers what its caller is told. */
  onMissing(): BrokerError {
    this.#noteMissing();
    this.check();
    return new BrokerError("chainUnreachable", { details: this.#outage?.reason ?? "" });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted && !(await this.#isThere())) await this.#pause();
    this.#running = undefined;
  }

  async #isThere(): Promise<boolean> {
    const { rpc, address, signer, logger } = this.#options;
    try {
      if (!(await isRegistry(rpc, { address, from: signer }))) {
        await this.#restore();
        return false;
      }
    } catch (error) {
      logger.debug("topic registry not looked for", { error });
      return false;
    }
    if (this.#outage !== undefined) logger.info("topic registry is there again", { registry: address });
    this.#outage = undefined;
    return true;
  }

  async #restore(): Promise<void> {
    const { isBehind, restore } = this.#options;
    this.#noteMissing();
    if (isBehind()) return;
    try {
      await restore();
    } catch (error) {
      if (error instanceof BrokerError) this.#note(reasonOf(error));
      throw error;
    }
  }

  /** A better reason, which an attempt to have it back may have given, stays. */
  #noteMissing(): void {
    if (this.#outage !== undefined) return;
    this.#note(`there is no topic registry at ${this.#options.address} on this chain at the moment`);
  }

  /** The same reason is logged once. */
  #note(reason: string): void {
    const { clock, logger } = this.#options;
    if (reason === this.#outage?.reason) return;
    logger.warn("topic registry missing", { reason });
    this.#outage = { reason, since: this.#outage?.since ?? clock.monotonic() };
  }

  async #pause(): Promise<void> {
    const wakeup = new Wakeup();
    const cancel = this.#options.clock.after(pauseMs, () => wakeup.wake());
    await wakeup.wait(this.#stopping.signal);
    cancel();
  }
}

/** Without the words that the reason of an outage is always told with. */
function reasonOf({ message, hints }: BrokerError): string {
  return [message.replace(`${errorCatalogue.chainUnreachable.message}: `, ""), ...hints].join(". ");
}
