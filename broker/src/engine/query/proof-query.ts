import { BrokerError, quote } from "@stele/wire";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { ProofResult } from "../broker.ts";
import type { Group } from "../group.ts";
import { Deadline } from "../time.ts";
import type { EventQuery } from "./event-query.ts";

/** How long the chain may take to tell what a proof is made from. */
const proofTimeoutMs = 30_000;

export interface ProofQueryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly events: EventQuery;
}

/** Makes proofs of events that are found by their identifiers. */
export class ProofQuery {
  readonly #parts: ProofQueryParts;

  constructor(parts: ProofQueryParts) {
    this.#parts = parts;
  }

  /** @throws BrokerError 100300 to 100304 as getEvent, 200205, 200206. */
  async get(group: Group, eventId: string): Promise<ProofResult> {
    const { store, clock, events } = this.#parts;
    const event = await events.get(group, eventId);
    const [topic, batch] = await Promise.all([group.getTopic(event.topic), store.findBatch(group.id, event)]);
    if (batch === undefined) throw new BrokerError("eventNotExist", { details: quote(eventId) });
    const { blockNumber, firstSequence } = batch;
    const index = event.sequence - firstSequence;
    using deadline = new Deadline(clock, proofTimeoutMs);
    const place = { address: topic.address, blockNumber, firstSequence, index };
    return { event, index, chain: await group.ledger.findProof(place, deadline.signal) };
  }
}
