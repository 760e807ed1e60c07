import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { JournalWriter } from "./journal-writer.ts";
import { KeptTransactions } from "./kept-transactions.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import { recoverTransaction } from "./recovered-transaction.ts";

export interface JournalRecoveryOptions {
  readonly journal: JournalWriter | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tracks a transaction that has no caller. */
  readonly adopt: (pending: PendingTransaction) => void;
}

/** Resumes transactions from the journal: those of an earlier run, and those that a reorg removed. */
export class JournalRecovery {
  readonly #options: JournalRecoveryOptions;
  readonly #kept = new KeptTransactions();
  readonly #lost = new WeakSet<PendingTransaction>();
  #bringingBack = 0;

  constructor(options: JournalRecoveryOptions) {
    this.#options = options;
  }

  /** Whether transactions that the chain lost are being read from the journal and are not tracked yet. */
  get isBringingBack(): boolean {
    return this.#bringingBack > 0;
  }

  /** Resumes the transactions of an earlier run; returns the nonce after the highest in the journal, 0 if the journal is empty. */
  async start(): Promise<number> {
    const { journal, clock, logger, adopt } = this.#options;
    const entries = (await journal?.list()) ?? [];
    for (const entry of entries) adopt(recoverTransaction(entry, clock));
    if (entries.length > 0)
      logger.info("transactions of an earlier run resumed from the journal", { count: entries.length });
    return (entries.at(-1)?.nonce ?? -1) + 1;
  }

  /** Keeps the journal's entry of a final transaction for some blocks, in case a deep reorg removes the transaction. */
  keep(pending: PendingTransaction, blockNumber: number): void {
    const { nonce, variants, isRecovered } = pending.state;
    const what = this.#lost.has(pending) ? "that the chain lost is included again" : "of an earlier run is included";
    if (isRecovered) this.#options.logger.debug(`transaction ${what}`, { nonce, blockNumber });
    if (nonce === undefined || this.#options.journal === undefined) return;
    const bytes = variants.reduce((sum, { raw }) => sum + raw.length, 0);
    this.#kept.keep({ nonce, blockNumber, bytes });
  }

  /** Removes the entries of transactions deep below `blockNumber`, and the oldest beyond the bound on bytes, from the journal. */
  prune(blockNumber: number): void {
    const nonces = this.#kept.prune(blockNumber);
    if (nonces.length > 0) void this.#forget(nonces);
  }

  /** Resumes the kept transactions of blocks after `blockNumber`, which the chain removed. */
  onReorganised(blockNumber: number): void {
    void this.#bringBack(this.#kept.takeAfter(blockNumber));
  }

  /** Resumes those of the kept transactions that have one of these nonces; returns the nonces found. */
  resume(nonces: readonly number[]): readonly number[] {
    const kept = this.#kept.takeNonces(new Set(nonces));
    void this.#bringBack(kept);
    return kept;
  }

  async #forget(nonces: readonly number[]): Promise<void> {
    try {
      await this.#options.journal?.remove(nonces);
    } catch (error) {
      this.#options.logger.debug("transactions not removed from the journal", { error }); // The journal writer logs it.
    }
  }

  async #bringBack(nonces: readonly number[]): Promise<void> {
    if (nonces.length === 0) return;
    const { journal, clock, logger, adopt } = this.#options;
    const wanted = new Set(nonces);
    this.#bringingBack += 1;
    try {
      const entries = ((await journal?.list()) ?? []).filter(({ nonce }) => wanted.has(nonce));
      for (const entry of entries) {
        const pending = recoverTransaction(entry, clock);
        this.#lost.add(pending);
        adopt(pending);
      }
      logger.warn("chain lost transactions, sending them again", { count: entries.length });
    } catch (error) {
      logger.error("journal not read, lost transactions are not sent again; check the store", { error });
    } finally {
      this.#bringingBack -= 1;
    }
  }
}
