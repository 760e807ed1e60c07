import { BrokerError, type Keccak256, quote, verifyProof } from "@stele/wire";
import type { Hash } from "../../domain/topic.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { ProofResult } from "../broker.ts";
import type { Group } from "../group.ts";
import { Deadline } from "../time.ts";
import type { EventQuery } from "./event-query.ts";
import { toProof } from "./to-proof.ts";

/** How long the chain may take to answer for a proof. */
const proofTimeoutMs = 30_000;

export interface ProofQueryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly events: EventQuery;
  readonly logger: Logger;
  /** A faster keccak-256 than the one in JavaScript. */
  readonly keccak?: Keccak256 | undefined;
}

/** Makes proofs of events that are found by their identifiers. */
export class ProofQuery {
  readonly #parts: ProofQueryParts;

  constructor(parts: ProofQueryParts) {
    this.#parts = parts;
  }

  /** @throws BrokerError 100300 to 100304 as getEvent, 200205, 200206, 200208. */
  async get(group: Group, eventId: string): Promise<ProofResult> {
    const { store, clock, events } = this.#parts;
    const event = await events.get(group, eventId);
    const [topic, batch] = await Promise.all([group.getTopic(event.topic), store.findBatch(group.id, event)]);
    if (batch === undefined) throw new BrokerError("eventNotExist", { details: quote(eventId) });
    const { blockNumber, firstSequence } = batch;
    const index = event.sequence - firstSequence;
    using deadline = new Deadline(clock, proofTimeoutMs);
    const place = { address: topic.address, blockNumber, firstSequence, index };
    const chain = await group.ledger.findProof(place, deadline.signal);
    const proof = { event, index, chain };
    const blockHash = await group.ledger.findBlockHash(blockNumber, deadline.signal);
    this.#check(proof, blockHash);
    return proof;
  }

  /** A proof that does not hold would make the broker, or the chain, look like a forger. */
  #check(proof: ProofResult, blockHash: Hash | undefined): void {
    const { eventId } = proof.event;
    const details = `the chain has no block ${proof.event.blockNumber} for ${eventId}`;
    if (blockHash === undefined) throw new BrokerError("proofUnavailable", { details });
    const { keccak } = this.#parts;
    const result = verifyProof(toProof(proof), blockHash, keccak === undefined ? {} : { keccak });
    if (result.status === "verified") return;
    const { step, reason } = result;
    this.#parts.logger.error("proof does not hold", { eventId, step, reason });
    const why = `what the index and the chain have of ${eventId} does not fit: ${step}: ${reason}`;
    throw new BrokerError("indexDamaged", { details: why });
  }
}
