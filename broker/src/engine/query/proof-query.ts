import type { Keccak256 } from "@stele/eth";
import { BrokerError, isBrokerError, type ProofResult, quote, verifyProof } from "@stele/wire";
import { lastPositionOf } from "../../domain/event.ts";
import { beforeBlock, endOfBlock } from "../../domain/position.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Hash } from "../../domain/topic.ts";
import type { Logger } from "../../lib/logger.ts";
import type { BlockState } from "../../ports/chain-check.ts";
import { type ChainProof, type ProofPlace, ReceiptsTooLong } from "../../ports/chain-proof.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { Group } from "../group.ts";
import type { PlacedProof } from "../placed-event.ts";
import { Deadline } from "../time.ts";
import type { EventQuery } from "./event-query.ts";
import { toProof } from "./to-proof.ts";

/** How long the chain's answers for one proof may take in all, in milliseconds. */
const proofTimeoutMs = 30_000;

/** Maximum number of batches in one read of a block's topics. */
const batchesReadMax = 500;
/** Maximum bytes of events in one read of a block's topics. */
const batchBytesReadMax = 2 ** 20;

export interface ProofQueryOptions {
  readonly store: Store;
  /** The store itself, which does not read dropped events from the chain: listing the topics of a block does not need them. */
  readonly storeWithoutDropped: Pick<Store, "readBatches">;
  readonly clock: Clock;
  readonly events: EventQuery;
  readonly logger: Logger;
  /** Looks for damage in a block of the group's chain, and repairs it from the index if possible. Undefined if the chain has no file here. */
  readonly inspectBlock: (group: Group, blockNumber: number) => Promise<BlockState | undefined>;
  /** A faster keccak-256 than the one in JavaScript. */
  readonly keccak?: Keccak256 | undefined;
}

/** Makes proofs of events by their identifiers. */
export class ProofQuery {
  readonly #options: ProofQueryOptions;

  constructor(options: ProofQueryOptions) {
    this.#options = options;
  }

  /**
   * Makes a proof, which contains the events of a transaction and reveals the topics of a block. `mayRead` says which topics the caller may read; without
   * it, the caller may read all. @throws BrokerError 100300 to 100304, as getEvent does; 100702, 200205, 200206, 200208, 200209.
   */
  async get(group: Group, eventId: string, mayRead?: (topic: TopicName) => boolean): Promise<PlacedProof> {
    const { store, clock, events } = this.#options;
    const event = await events.get(group, eventId);
    const [topic, batch] = await Promise.all([group.getTopic(event.topic), store.findBatch(group.id, event)]);
    if (batch === undefined) throw new BrokerError("eventNotExist", { details: quote(eventId) });
    const { blockNumber, firstSequence } = batch;
    if (mayRead !== undefined) await this.#checkTopics(group, blockNumber, mayRead);
    const index = event.sequence - firstSequence;
    using deadline = new Deadline(clock, proofTimeoutMs);
    const place = { address: topic.address, blockNumber, firstSequence, index };
    const proof = { event, index, chain: await this.#findProof(group, place, deadline.signal) };
    const blockHash = await group.ledger.findBlockHash(blockNumber, deadline.signal);
    if (blockHash === undefined) {
      const details = `the chain has no block ${blockNumber} for ${event.eventId}`;
      throw new BrokerError("proofUnavailable", { details });
    }
    const result = this.#verify(proof, blockHash);
    if (result.status === "verified") return proof;
    if (result.step !== "header") throw this.#refuted(proof, result);
    // The ledger may have proved a block that a reorg has removed since.
    const now = { ...proof, chain: await group.ledger.findProof({ ...place, blockHash }, deadline.signal) };
    const resultNow = this.#verify(now, blockHash);
    if (resultNow.status === "refuted") throw this.#refuted(now, resultNow);
    return now;
  }

  async #checkTopics({ id }: Group, blockNumber: number, mayRead: (topic: TopicName) => boolean): Promise<void> {
    const bounds = { topic: undefined, batchesMax: batchesReadMax, bytesMax: batchBytesReadMax };
    let after = beforeBlock(blockNumber);
    for (;;) {
      const range = { after, upTo: endOfBlock(blockNumber), ...bounds };
      const batches = await this.#options.storeWithoutDropped.readBatches(id, range);
      const last = batches.at(-1);
      if (last === undefined) return;
      if (!batches.every(({ topic }) => mayRead(topic))) throw proofDenied();
      after = lastPositionOf(last);
    }
  }

  /**
   * Gets the proof from the chain. If that fails and the chain's file is here, inspects the block, and tries once more unless the block stays damaged. If only
   * the block's receipts are too long, does not inspect it: the chain makes no block during an inspection.
   */
  async #findProof(group: Group, place: ProofPlace, signal: AbortSignal): Promise<ChainProof> {
    try {
      return await group.ledger.findProof(place, signal);
    } catch (error) {
      if (!isBrokerError(error, "proofUnavailable") || error.cause instanceof ReceiptsTooLong) throw error;
      const state = await this.#options.inspectBlock(group, place.blockNumber);
      if (state === undefined) throw error;
      // If the block is intact now, another call may have repaired it since the first try.
      if (state !== "damaged") return group.ledger.findProof(place, signal);
      const details = `block ${place.blockNumber}, or the next one, is damaged in the chain's file; health says what to restore`;
      throw new BrokerError("proofUnavailable", { details, cause: error });
    }
  }

  /** Verifies the proof before the broker returns it: an invalid one would look like a forgery by the broker or the chain. */
  #verify(proof: PlacedProof, blockHash: Hash): ProofResult {
    const { keccak } = this.#options;
    return verifyProof(toProof(proof), blockHash, keccak === undefined ? {} : { keccak });
  }

  #refuted(
    { event: { eventId } }: PlacedProof,
    { step, reason }: Extract<ProofResult, { status: "refuted" }>,
  ): BrokerError {
    this.#options.logger.error("proof does not hold", { eventId, step, reason });
    const why = `the index and the chain disagree about ${eventId}: ${step}: ${reason}`;
    return new BrokerError("indexDamaged", { details: why });
  }
}

/** The refusal of a proof to a caller who may not read everything that it reveals. */
export function proofDenied(): BrokerError {
  const details = "getProof needs the right to read every topic: a proof also shows other events of the transaction";
  return new BrokerError("accessDenied", { details });
}
