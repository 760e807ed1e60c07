import type { Block } from "./blocks/block.ts";
import { encodeCommittedBlock } from "./blocks/committed-block.ts";
import type { FromWorker } from "./messages.ts";

/** Posts a message to the owner and transfers the buffers in the list. */
export type Post = (message: FromWorker, handedOver?: readonly ArrayBuffer[]) => void;

/**
 * Sends blocks and the confirmations of submissions to the thread that started the chain's worker. The message with a block also confirms the transactions
 * accepted before it, so a publish costs one message in each direction.
 */
export class OwnerFeed {
  readonly #post: Post;
  #isOn = false;
  #accepted: number[] = [];

  constructor(post: Post) {
    this.#post = post;
  }

  /** Posts blocks from the next one on. */
  turnOn(): void {
    this.#isOn = true;
  }

  /** Notes that a submitted transaction is in the pool. The next message confirms this to the owner. */
  accept(id: number): void {
    this.#accepted.push(id);
  }

  reportBlock(block: Block, receipts: readonly Uint8Array[]): void {
    if (!this.#isOn) return;
    const encoded = encodeCommittedBlock(block, receipts);
    // `encodeCommittedBlock` returns an array that is alone in its buffer, so the buffer can be transferred.
    this.#post({ kind: "block", block: encoded, accepted: this.#takeAccepted() }, [encoded.buffer as ArrayBuffer]);
  }

  /** Confirms accepted submissions that no block message has confirmed. Called after each attempt to make a block, even if none was made. */
  reportAccepted(): void {
    if (this.#accepted.length > 0) this.#post({ kind: "accepted", accepted: this.#takeAccepted() });
  }

  #takeAccepted(): number[] {
    const accepted = this.#accepted;
    this.#accepted = [];
    return accepted;
  }
}
