import { decodeEvents, MalformedBatchError, merkleRoot } from "@stele/wire";
import { commonEventRules, type EventRules, findBreach } from "../../../domain/event-rules.ts";
import type { BatchFault } from "../../../ports/ledger.ts";
import type { Hex } from "../hex.ts";
import { toHex } from "../hex.ts";

/** Encoded bytes kept of batches that this process wrote until they come back, so that they need not be verified then. */
const ownBytesMax = 16_777_216;

/** What a batch on the chain claims, and its bytes. */
export interface ClaimedBatch {
  readonly count: number;
  readonly eventsRoot: Hex;
  readonly events: Uint8Array;
}

/** Holds every batch against its count and root, and against what may be published. */
export class BatchVerifier {
  readonly #own = new Map<Hex, { readonly count: number; readonly events: Uint8Array }>();
  readonly #rules: EventRules;
  #ownBytes = 0;

  constructor(rules: EventRules = commonEventRules) {
    this.#rules = rules;
  }

  /** Computes the root of a batch of ours, and remembers the batch: with the same bytes, count and root it is known to be good. */
  rootOf(events: Uint8Array, count: number): Uint8Array {
    const root = merkleRoot(events);
    this.#remember(toHex(root), { count, events });
    return root;
  }

  /** Undefined when the batch is what it claims to be, else what is wrong with it. */
  fault(batch: ClaimedBatch): { readonly fault: BatchFault; readonly reason: string } | undefined {
    if (this.#takeOwn(batch)) return undefined;
    try {
      const events = decodeEvents(batch.events);
      const { length } = events;
      if (length !== batch.count) {
        return { fault: "wrong-count", reason: `${length} events where ${batch.count} were claimed` };
      }
      const root = toHex(merkleRoot(batch.events));
      if (root !== batch.eventsRoot) {
        return { fault: "wrong-root", reason: `root ${root} where ${batch.eventsRoot} was claimed` };
      }
      const breach = findBreach({ events, bytes: batch.events.length }, this.#rules);
      return breach === undefined ? undefined : { fault: "beyond-limits", reason: breach };
    } catch (error) {
      if (error instanceof MalformedBatchError) return { fault: "undecodable-batch", reason: error.message };
      throw error;
    }
  }

  /** Whether this process wrote the batch. It comes back once as a rule; when it does again, it is verified like any other. */
  #takeOwn(batch: ClaimedBatch): boolean {
    const own = this.#own.get(batch.eventsRoot);
    if (own === undefined || own.count !== batch.count || Buffer.compare(own.events, batch.events) !== 0) return false;
    this.#own.delete(batch.eventsRoot);
    this.#ownBytes -= own.events.length;
    return true;
  }

  #remember(root: Hex, batch: { readonly count: number; readonly events: Uint8Array }): void {
    if (this.#own.has(root)) return;
    this.#own.set(root, batch);
    this.#ownBytes += batch.events.length;
    for (const [oldest, { events }] of this.#own) {
      if (this.#ownBytes <= ownBytesMax) return;
      this.#own.delete(oldest);
      this.#ownBytes -= events.length;
    }
  }
}
