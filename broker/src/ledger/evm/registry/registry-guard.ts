import { BrokerError, errorCatalogue } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { isRegistry } from "./find-registry.ts";
import { missing } from "./registry-deployer.ts";

const pauseMs = 1000;

export interface RegistryGuardOptions {
  readonly rpc: Rpc;
  readonly address: Address;
  readonly signer: Address;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Checks on demand whether the chain still has the registry. While the registry is missing, the group is down with the reason and the remedy. */
export class RegistryGuard {
  readonly #options: RegistryGuardOptions;
  readonly #stopping = new AbortController();
  #outage: Outage | undefined;
  #running: Promise<void> | undefined;

  constructor(options: RegistryGuardOptions) {
    this.#options = options;
  }

  /** Why nothing can be written; undefined while the registry is there, as far as known. */
  get outage(): Outage | undefined {
    return this.#outage;
  }

  /** Checks in the background, repeatedly until the registry is there. Call it after a reorg. */
  check(): void {
    if (this.#stopping.signal.aborted) return;
    this.#running ??= this.#run();
  }

  /** Call it when a call found no registry; returns the error for the caller. */
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
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted && !(await this.#isThere())) await pause(clock, pauseMs, signal);
    this.#running = undefined;
    // A call may have found no registry after the last answer. Nobody else would check: no call is made during an outage.
    if (this.#outage !== undefined) this.check();
  }

  async #isThere(): Promise<boolean> {
    const { rpc, address, signer, logger } = this.#options;
    try {
      if (!(await isRegistry(rpc, { address, from: signer }))) {
        this.#noteMissing();
        return false;
      }
    } catch (error) {
      logger.debug("topic registry not checked", { error });
      return false;
    }
    if (this.#outage !== undefined) logger.info("topic registry is on the chain again", { registry: address });
    this.#outage = undefined;
    return true;
  }

  /** Logs the outage and remembers it, unless it is known. */
  #noteMissing(): void {
    if (this.#outage !== undefined) return;
    const { address, clock, logger } = this.#options;
    const { message, hints } = missing(address);
    const reason = [message.replace(`${errorCatalogue.chainUnreachable.message}: `, ""), ...hints].join(". ");
    logger.error("topic registry missing", { reason });
    this.#outage = { reason, since: clock.monotonic() };
  }
}
