import { isBrokerError } from "@stele/wire";
import { setTimeout as rest } from "node:timers/promises";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import { SingleFlight } from "../../lib/single-flight.ts";
import { createLoopSlices } from "../../lib/system/loop-slices.ts";
import { encodeListing } from "./listing.ts";

/** Longest pause, in milliseconds, between two listings. */
const listingRestMsMax = 5_000;

export interface SharedListingOptions {
  readonly broker: Pick<Broker, "authorize" | "listSubscriptions">;
  /** host:port of this node in the listing. */
  readonly nodeAddress: () => string;
}

/**
 * The listing of subscriptions. Callers that wait for the same listing get the same bytes; it began after their requests. After a listing comes a pause
 * of the same length, at most `listingRestMsMax`, so that many callers cannot keep the processor busy with listings.
 */
export class SharedListing {
  readonly #options: SharedListingOptions;
  readonly #slices = createLoopSlices();
  readonly #shared = new SingleFlight((caller: Caller) => this.#makeRested(caller));
  #rested: Promise<unknown> = Promise.resolve();

  constructor(options: SharedListingOptions) {
    this.#options = options;
  }

  /** The listing as JSON, in pieces. @throws BrokerError 100701, 100702, 200207, 200300. */
  async read(caller: Caller): Promise<readonly Buffer[]> {
    const { broker } = this.#options;
    broker.authorize(caller, "administer");
    try {
      return await this.#shared.read(caller);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The listing runs for its first caller. If that caller lost its right while it waited, the other callers still have theirs.
      broker.authorize(caller, "administer");
      return this.#shared.read(caller);
    }
  }

  async #makeRested(caller: Caller): Promise<readonly Buffer[]> {
    await this.#rested;
    const startedAt = performance.now();
    try {
      return await this.#make(caller);
    } finally {
      const tookMs = performance.now() - startedAt;
      this.#rested = rest(Math.min(tookMs, listingRestMsMax), undefined, { ref: false });
    }
  }

  async #make(caller: Caller): Promise<readonly Buffer[]> {
    const { broker, nodeAddress } = this.#options;
    return encodeListing(await broker.listSubscriptions(caller), { ownAddress: nodeAddress(), slices: this.#slices });
  }
}

function isRefusal(error: unknown): boolean {
  return isBrokerError(error, "accessDenied") || isBrokerError(error, "credentialRefused");
}
