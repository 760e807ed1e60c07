import { setTimeout as rest } from "node:timers/promises";
import type { Broker } from "../../engine/broker.ts";
import { SingleFlight } from "../../lib/single-flight.ts";
import { createLoopSlices } from "../../lib/system/loop-slices.ts";
import { encodeListing } from "./listing.ts";

/** Longest rest, in milliseconds, between two listings. */
const listingRestMsMax = 5_000;

export interface SharedListingOptions {
  readonly broker: Pick<Broker, "listSubscriptions">;
  /** host:port under which the listing names this node. */
  readonly nodeAddress: () => string;
}

/**
 * The listing of subscriptions, made once for all who ask meanwhile: they get the same bytes, which are no older than their requests. After
 * each, making listings rests for as long as it took, so that callers, however many, leave half of the processor to others.
 */
export class SharedListing {
  readonly #options: SharedListingOptions;
  readonly #slices = createLoopSlices();
  readonly #shared = new SingleFlight(() => this.#makeRested());
  #rested: Promise<unknown> = Promise.resolve();

  constructor(options: SharedListingOptions) {
    this.#options = options;
  }

  /** The listing as JSON, in pieces. */
  read(): Promise<readonly Buffer[]> {
    return this.#shared.read();
  }

  async #makeRested(): Promise<readonly Buffer[]> {
    await this.#rested;
    const startedAt = performance.now();
    try {
      return await this.#make();
    } finally {
      const tookMs = performance.now() - startedAt;
      this.#rested = rest(Math.min(tookMs, listingRestMsMax), undefined, { ref: false });
    }
  }

  async #make(): Promise<readonly Buffer[]> {
    const { broker, nodeAddress } = this.#options;
    return encodeListing(await broker.listSubscriptions(), { ownAddress: nodeAddress(), slices: this.#slices });
  }
}
