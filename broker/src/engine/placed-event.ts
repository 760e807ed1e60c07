import type { EventBatch } from "../domain/event.ts";
import type { EventResult, ProofResult } from "./broker.ts";

/** An event with the batch that committed it. */
export interface PlacedEvent extends EventResult {
  readonly batch: EventBatch;
}

/** A proof whose event comes with its batch. */
export interface PlacedProof extends ProofResult {
  readonly event: PlacedEvent;
}
