import type { EventBatch } from "../domain/event.ts";
import type { EventResult, ProofResult } from "./broker.ts";

/** An event with its place on the chain. */
export interface PlacedEvent extends EventResult {
  readonly batch: EventBatch;
}

export interface PlacedProof extends ProofResult {
  readonly event: PlacedEvent;
}
