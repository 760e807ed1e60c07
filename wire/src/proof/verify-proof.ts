import {
  findBytes,
  type Hex,
  isSameBytes,
  type Keccak256,
  MalformedError,
  portableKeccak256,
  toHexText,
} from "@stele/eth";
import type { BatchEvent } from "../batch/encode-events.ts";
import { leafHash, verifyPath } from "../batch/merkle.ts";
import { type EventId, formatEventId, topicDigest } from "../ids/event-id.ts";
import { type ProvenHeader, readProvenHeader } from "./header.ts";
import { checkProof, type Proof } from "./proof-schema.ts";
import { type PublishedBatch, readBatchEvents, readPublished } from "./published-log.ts";
import { type ReceiptLog, readReceiptLogs } from "./receipt.ts";
import { findReceipt } from "./receipts-trie.ts";
import { type ProofStep, Refuted } from "./refuted.ts";
import { topicAddress } from "./topic-address.ts";

/** A proven event, and its place. Addresses and hashes are lower-case hex. */
export interface ProvenEvent extends BatchEvent {
  readonly topic: string;
  readonly eventId: EventId;
  /** Number of the event in its topic, from 1. */
  readonly sequence: number;
  readonly blockNumber: number;
  /** Seconds since the epoch, on most chains. */
  readonly blockTimestamp: number;
  /** Index of the transaction in its block. */
  readonly transactionIndex: number;
  readonly topicAddress: Hex;
  /** The registry that the topic's address derives from. Trusting the proof means trusting this registry. */
  readonly registry: Hex;
  /** The publisher: the account that called the registry. */
  readonly publisher: Hex;
  /** Merkle root over the events of the batch. */
  readonly eventsRoot: Hex;
}

/** Result of the verification. Reasons are for people. */
export type ProofResult =
  | { readonly status: "verified"; readonly event: ProvenEvent }
  | { readonly status: "refuted"; readonly step: ProofStep; readonly reason: string };

export interface VerifyOptions {
  /** The expected registry. If absent, any registry passes; the result names it. */
  readonly expectedRegistry?: string;
  /** Accounts that may have published the event. If absent, any account passes; the result names it. */
  readonly expectedPublishers?: readonly string[];
  /** A keccak-256 to use instead of the portable one, such as a faster one. */
  readonly keccak?: Keccak256;
}

/** The caller's expectations, as bytes. */
interface Expected {
  readonly registry: Uint8Array | undefined;
  readonly publishers: readonly Uint8Array[] | undefined;
}

const hashBytes = 32;
const addressBytes = 20;

/**
 * Whether `proof` shows that its event is in the block with the hash `trustedBlockHash`. Works offline: the caller must trust that block hash and
 * the registry. `proof` may be any value; the block hash covers every part of it.
 * @throws TypeError if `trustedBlockHash` or an expected address is malformed.
 */
export function verifyProof(proof: unknown, trustedBlockHash: string, options: VerifyOptions = {}): ProofResult {
  const blockHash = parseGiven(trustedBlockHash, { bytes: hashBytes, what: "a block's hash" });
  const expected = parseExpected(options);
  const checked = checkProof(proof);
  if (checked.status === "malformed") return { status: "refuted", step: "form", reason: checked.reason };
  try {
    const event = new ProofVerifier(checked.proof, options.keccak ?? portableKeccak256).verify(blockHash, expected);
    return { status: "verified", event };
  } catch (error) {
    if (!(error instanceof Refuted)) throw error;
    return { status: "refuted", step: error.step, reason: error.message };
  }
}

class ProofVerifier {
  readonly #proof: Proof;
  readonly #keccak: Keccak256;

  constructor(proof: Proof, keccak: Keccak256) {
    this.#proof = proof;
    this.#keccak = keccak;
  }

  verify(blockHash: Uint8Array, { registry, publishers }: Expected): ProvenEvent {
    const header = this.#header(blockHash);
    const log = this.#log(this.#receipt(header));
    const batch = this.#batch(log);
    this.#checkEvent(batch, header);
    this.#checkRegistry(log, registry);
    this.#checkTopic(batch);
    this.#checkPublisher(batch, publishers);
    return this.#toProven(header, batch);
  }

  #header(blockHash: Uint8Array): ProvenHeader {
    const bytes = bytesOf(this.#proof.header);
    const hash = this.#keccak(bytes);
    if (!isSameBytes(hash, blockHash)) throw new Refuted("header", `the header is that of block ${toHexText(hash)}`);
    return reading("header", () => readProvenHeader(bytes));
  }

  #receipt({ receiptsRoot }: ProvenHeader): Uint8Array {
    const { transactionIndex, nodes } = this.#proof.receipt;
    const place = { root: receiptsRoot, transactionIndex, nodes: nodes.map(bytesOf) };
    return reading("receipt", () => findReceipt(place, this.#keccak));
  }

  #log(receipt: Uint8Array): ReceiptLog {
    const { logPlace } = this.#proof.receipt;
    const logs = reading("receipt", () => readReceiptLogs(receipt));
    const log = logs[logPlace];
    if (log === undefined) throw new Refuted("log", `there is no log ${logPlace} in the receipt`);
    return log;
  }

  /** The batch of a log. Refutes a batch whose count or root does not match its events, since readers skip it. */
  #batch(log: ReceiptLog): PublishedBatch {
    const batch = reading("log", () => readPublished(log, this.#keccak));
    const events = reading("batch", () => readBatchEvents(batch));
    this.#checkPlace(batch, events);
    return batch;
  }

  #checkPlace({ eventsRoot }: PublishedBatch, events: readonly BatchEvent[]): void {
    const { event, batch } = this.#proof;
    const listed = events[batch.index];
    if (listed === undefined) {
      throw new Refuted("batch", `there is no event ${batch.index} in a batch of ${events.length}`);
    }
    const payload = { content: bytesOf(event.content), extensions: event.extensions };
    const leaf = leafHash(batch.index, payload, this.#keccak);
    if (!isSameBytes(leaf, leafHash(batch.index, listed, this.#keccak))) {
      throw new Refuted("batch", `event ${batch.index} of the batch is another one`);
    }
    if (!verifyPath({ leaf, path: batch.path.map(bytesOf), root: eventsRoot }, this.#keccak)) {
      throw new Refuted("batch", "the event's path does not lead to the batch's root");
    }
  }

  #checkEvent({ firstSequence }: PublishedBatch, { number }: ProvenHeader): void {
    const { event, batch } = this.#proof;
    const sequence = firstSequence + batch.index;
    const eventId = formatEventId({ topicDigest: topicDigest(event.topic), sequence, blockNumber: number });
    if (eventId !== event.eventId) throw new Refuted("event", `the event's identifier is ${eventId}`);
  }

  #checkRegistry({ address }: ReceiptLog, expected: Uint8Array | undefined): void {
    const registry = bytesOf(this.#proof.registry);
    if (expected !== undefined && !isSameBytes(registry, expected)) {
      throw new Refuted("topic", `the registry is ${toHexText(registry)}`);
    }
    if (isSameBytes(address, registry)) return;
    throw new Refuted("topic", `${toHexText(address)} wrote the log, but the registry is ${toHexText(registry)}`);
  }

  #checkTopic({ topic }: PublishedBatch): void {
    const registry = bytesOf(this.#proof.registry);
    const expected = topicAddress({ registry, name: this.#proof.event.topic }, this.#keccak);
    if (isSameBytes(topic, expected)) return;
    throw new Refuted(
      "topic",
      `the batch is for ${toHexText(topic)}, but the topic's address is ${toHexText(expected)}`,
    );
  }

  #checkPublisher({ sender }: PublishedBatch, publishers: readonly Uint8Array[] | undefined): void {
    const { publisher } = this.#proof;
    if (publisher !== toHexText(sender)) {
      throw new Refuted("publisher", `${toHexText(sender)} published the event, not ${publisher}`);
    }
    if (publishers === undefined || publishers.some((publisher) => isSameBytes(publisher, sender))) return;
    throw new Refuted("publisher", `${toHexText(sender)} published the event, but is not an expected publisher`);
  }

  #toProven(header: ProvenHeader, batch: PublishedBatch): ProvenEvent {
    const { event, registry, receipt, batch: place } = this.#proof;
    return {
      topic: event.topic,
      content: bytesOf(event.content),
      extensions: event.extensions,
      eventId: event.eventId as EventId, // #checkEvent compared it with the result of formatEventId.
      sequence: batch.firstSequence + place.index,
      blockNumber: header.number,
      blockTimestamp: header.timestamp,
      transactionIndex: receipt.transactionIndex,
      topicAddress: toHexText(batch.topic),
      registry: toHexText(bytesOf(registry)),
      publisher: toHexText(batch.sender),
      eventsRoot: toHexText(batch.eventsRoot),
    };
  }
}

/** Runs a step that reads bytes; malformed bytes refute the proof at this step. */
function reading<Result>(step: ProofStep, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof MalformedError) throw new Refuted(step, error.message);
    throw error;
  }
}

/** Bytes of a text whose form is already checked. */
function bytesOf(text: string): Uint8Array {
  const bytes = findBytes(text);
  if (bytes === undefined) throw new TypeError("the form of the proof was not checked");
  return bytes;
}

function parseExpected({ expectedRegistry, expectedPublishers }: VerifyOptions): Expected {
  const registry =
    expectedRegistry === undefined
      ? undefined
      : parseGiven(expectedRegistry, { bytes: addressBytes, what: "a registry's address" });
  const publishers = expectedPublishers?.map((text) =>
    parseGiven(text, { bytes: addressBytes, what: "a publisher's address" }),
  );
  return { registry, publishers };
}

function parseGiven(text: string, { bytes, what }: { readonly bytes: number; readonly what: string }): Uint8Array {
  const found = findBytes(text.toLowerCase());
  if (found?.length !== bytes) throw new TypeError(`not ${what}: ${text.slice(0, 80)}`);
  return found;
}
