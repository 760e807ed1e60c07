import { MalformedError } from "@stele/eth";
import { type Hex, toHex } from "@stele/eth/node";
import { decodeEvents, merkleRoot } from "@stele/wire";
import { commonEventRules, type EventRules, findBreach } from "../../../domain/event-rules.ts";
import type { BatchFault } from "../../../ports/ledger.ts";

/** Upper bound on the encoded bytes of own batches that are kept until the chain returns them. A kept batch needs no verification. */
const ownBytesMax = 16_777_216;

/** A batch on the chain. Its publisher declared count and root, which may be wrong. */
export interface UnverifiedBatch {
  readonly count: number;
  readonly eventsRoot: Hex;
  readonly events: Uint8Array;
}

/** Batches of this process with the same events. */
interface OwnBatches {
  readonly count: number;
  readonly events: Uint8Array;
  /** How many of them the chain has not returned yet. */
  awaited: number;
}

/** Verifies the count, the root and the events of each batch, except batches that this process wrote. */
export class BatchVerifier {
  readonly #own = new Map<Hex, OwnBatches>();
  readonly #rules: EventRules;
  #ownBytes = 0;

  constructor(rules: EventRules = commonEventRules) {
    this.#rules = rules;
  }

  /** Computes the root of an own batch, and remembers that this batch is valid. */
  rootOf(events: Uint8Array, count: number): Uint8Array {
    const root = merkleRoot(events);
    this.#remember(toHex(root), { count, events, awaited: 1 });
    return root;
  }

  /** Why the batch is malformed; undefined if it is valid or if this process wrote it. */
  fault(batch: UnverifiedBatch): { readonly fault: BatchFault; readonly reason: string } | undefined {
    return this.#takeOwn(batch) ? undefined : findFault(batch, this.#rules);
  }

  /** Whether this process wrote the batch and has not read it back yet. A batch that returns again, for example after a reorg, is verified like any other. */
  #takeOwn(batch: UnverifiedBatch): boolean {
    const own = this.#own.get(batch.eventsRoot);
    if (own === undefined || own.count !== batch.count || Buffer.compare(own.events, batch.events) !== 0) return false;
    own.awaited -= 1;
    if (own.awaited > 0) return true;
    this.#own.delete(batch.eventsRoot);
    this.#ownBytes -= own.events.length;
    return true;
  }

  #remember(root: Hex, batch: OwnBatches): void {
    const same = this.#own.get(root);
    if (same !== undefined) {
      same.awaited += 1;
      return;
    }
    this.#own.set(root, batch);
    this.#ownBytes += batch.events.length;
    for (const [oldest, { events }] of this.#own) {
      if (this.#ownBytes <= ownBytesMax) return;
      this.#own.delete(oldest);
      this.#ownBytes -= events.length;
    }
  }
}

/** As {@link BatchVerifier.fault}, for any batch. Without rules, events of any size are valid. */
export function findFault(
  batch: UnverifiedBatch,
  rules: EventRules | undefined,
): { readonly fault: BatchFault; readonly reason: string } | undefined {
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
    const breach = rules && findBreach({ events, bytes: batch.events.length }, rules);
    return breach === undefined ? undefined : { fault: "beyond-limits", reason: breach };
  } catch (error) {
    if (error instanceof MalformedError) return { fault: "undecodable-batch", reason: error.message };
    throw error;
  }
}
