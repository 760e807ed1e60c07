import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { InFlight } from "./in-flight.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { Signer } from "../native-crypto.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, type RpcFailure, toRpcFailure } from "../endpoint/rpc-failure.ts";
import { type Fees, signTransaction } from "./transaction.ts";

export interface TransmitterOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly chainId: number;
  readonly inFlight: InFlight;
  readonly journal: JournalWriter | undefined;
  /** The newest block heard of. */
  readonly head: () => number;
  /** The endpoint has it. */
  readonly onTaken: () => void;
  /** The endpoint took anew what it had taken before, or may have: it has forgotten it, never got it, or is another node. */
  readonly onForgotten: () => void;
  /** The endpoint gave no answer, or was not reached. */
  readonly onUnanswered: (pending: PendingTransaction) => void;
  /** The endpoint did not take it this time. */
  readonly onRefused: (pending: PendingTransaction, failure: RpcFailure) => void;
}

/** Signs transactions and hands them to the endpoint, each once it stands in the journal. */
export class Transmitter {
  readonly #options: TransmitterOptions;
  /** Those whose newest form the journal has not taken yet. */
  readonly #unrecorded = new WeakSet<PendingTransaction>();

  constructor(options: TransmitterOptions) {
    this.#options = options;
  }

  /**
   * Signs a form of the transaction, which has its nonce, and sends it. Answers when the journal has it; undefined without a journal,
   * and then nothing here waits, so that calls keep their order.
   */
  sign(pending: PendingTransaction, fees: Fees): Promise<void> | undefined {
    const { inFlight, journal } = this.#options;
    const { to, data, gas } = pending.request;
    const nonce = pending.nonce;
    if (nonce === undefined) throw new Error("a transaction is signed with a nonce");
    const { signer, chainId, clock, head } = this.#options;
    const signed = signTransaction({ chainId, nonce, fees, gas, to, data }, signer);
    inFlight.add(pending, { ...signed, fees, signedAt: clock.monotonic(), signedAtBlock: head() });
    if (journal !== undefined) return this.#record(pending, journal);
    void this.send(pending);
    return undefined;
  }

  /** Whether the newest form waits for the journal, and is not sent before. */
  isUnrecorded(pending: PendingTransaction): boolean {
    return this.#unrecorded.has(pending);
  }

  /** Sends the newest form, once more where it was sent before, and never before it stands in the journal. */
  async send(pending: PendingTransaction): Promise<void> {
    const [newest] = pending.variants;
    if (newest === undefined || pending.isDone || pending.isSending) return;
    if (this.#unrecorded.has(pending)) return this.#recordAgain(pending);
    pending.isSending = true;
    const failure = await this.#try(newest.raw);
    pending.isSending = false;
    if (pending.isDone) return;
    if (failure === undefined || failure.kind === "already-known") {
      const isGone = pending.takenHash === newest.hash || pending.reach === "unknown";
      const isForgotten = failure === undefined && isGone;
      pending.takenHash = newest.hash;
      pending.reach = "taken";
      pending.refusal = undefined;
      this.#options.onTaken();
      if (isForgotten) this.#options.onForgotten();
      this.#sendBehind(pending);
    } else if (isUnanswered(failure)) {
      if (failure.kind === "connection" && pending.reach === "nowhere") pending.reach = "unknown";
      this.#options.onUnanswered(pending);
    } else {
      this.#options.logger.warn("transaction refused", { nonce: pending.nonce, error: failure });
      this.#options.onRefused(pending, failure);
    }
  }

  /** What was refused because this one was missing is not left to wait for its next look. */
  #sendBehind({ nonce }: PendingTransaction): void {
    const next = nonce === undefined ? undefined : this.#options.inFlight.findNonce(nonce + 1);
    if (next?.refusal?.kind === "nonce-too-high") void this.send(next);
  }

  async #record(pending: PendingTransaction, journal: JournalWriter): Promise<void> {
    pending.isSending = true; // Nothing of it may be sent, nor taken back, until the disk has it.
    this.#unrecorded.add(pending);
    try {
      await journal.record(pending);
      this.#unrecorded.delete(pending);
    } finally {
      pending.isSending = false;
    }
    void this.send(pending);
  }

  async #recordAgain(pending: PendingTransaction): Promise<void> {
    const { journal } = this.#options;
    if (journal !== undefined) await this.#record(pending, journal).catch(() => {}); // Who writes the journal has told of it.
  }

  async #try(raw: Uint8Array): Promise<RpcFailure | undefined> {
    try {
      await this.#options.rpc.sendRaw(raw);
      return undefined;
    } catch (error) {
      return toRpcFailure(error);
    }
  }
}
