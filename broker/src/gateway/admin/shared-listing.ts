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
 * The listing of subscriptions. All callers that wait get the same bytes, of a listing that began after their requests. Each listing is followed by
 * a pause as long as the listing took, so that callers, however many, leave half of the processor.
 */
export class SharedListing {
  readonly #options: SharedListingOptions;
  readonly #slices = createLoopSlices();
  readonly #shared = new SingleFlight((caller: Caller) => this.#makeRested(caller));
  #rested: Promise<unknown> = Promise.resolve();

  constructor(options: SharedListingOptions) {
    this.#options = options;
  }

  /** The listing as JSON, in pieces. @throws BrokerError 100701, 100702. */
  async read(caller: Caller): Promise<readonly Buffer[]> {
    const { broker } = this.#options;
    broker.authorize(caller, "administer");
    try {
      return await this.#shared.read(caller);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The first caller may have lost its right while it waited, which must not refuse the others.
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
