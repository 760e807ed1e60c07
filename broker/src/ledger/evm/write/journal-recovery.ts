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
  /** Takes a transaction under care whose caller is gone. */
  readonly adopt: (pending: PendingTransaction) => void;
}

/** What the journal is for: transactions of an earlier run, and those that the chain has included and lost again. */
export class JournalRecovery {
  readonly #options: JournalRecoveryOptions;
  readonly #kept = new KeptTransactions();
  readonly #lost = new WeakSet<PendingTransaction>();
  #bringingBack = 0;

  constructor(options: JournalRecoveryOptions) {
    this.#options = options;
  }

  /** Whether transactions that the chain lost are being read, and not under care again as yet. */
  get isBringingBack(): boolean {
    return this.#bringingBack > 0;
  }

  /** Takes up what an earlier run has left; answers the lowest nonce that is free as far as the journal knows. */
  async start(): Promise<number> {
    const { journal, clock, logger, adopt } = this.#options;
    const entries = (await journal?.list()) ?? [];
    for (const entry of entries) adopt(recoverTransaction(entry, clock));
    if (entries.length > 0) logger.info("transactions of an earlier run taken up", { count: entries.length });
    return (entries.at(-1)?.nonce ?? -1) + 1;
  }

  /** Keeps the entry of a transaction in a final block, until that is deep. */
  keep(pending: PendingTransaction, blockNumber: number): void {
    const { nonce, variants, isRecovered } = pending.state;
    const what = this.#lost.has(pending) ? "that the chain had lost included again" : "of an earlier run included";
    if (isRecovered) this.#options.logger.debug(`transaction ${what}`, { nonce, blockNumber });
    if (nonce === undefined || this.#options.journal === undefined) return;
    const bytes = variants.reduce((sum, { raw }) => sum + raw.length, 0);
    this.#kept.keep({ nonce, blockNumber, bytes });
  }

  /** Lets go of what is deep below a block. */
  letGo(blockNumber: number): void {
    const nonces = this.#kept.letGo(blockNumber);
    if (nonces.length > 0) void this.#forget(nonces);
  }

  /** Takes up again what stood in blocks after this one. */
  onReorganised(blockNumber: number): void {
    void this.#bringBack(this.#kept.takeAfter(blockNumber));
  }

  /** Takes up again those of these nonces that are kept; answers which. */
  takeUp(nonces: readonly number[]): readonly number[] {
    const kept = this.#kept.takeNonces(new Set(nonces));
    void this.#bringBack(kept);
    return kept;
  }

  async #forget(nonces: readonly number[]): Promise<void> {
    try {
      await this.#options.journal?.remove(nonces);
    } catch (error) {
      this.#options.logger.debug("transactions not forgotten", { error }); // The journal has told of it.
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
      logger.warn("transactions that the chain has lost are sent again", { count: entries.length });
    } catch (error) {
      logger.error("journal of transactions not read", { error });
    } finally {
      this.#bringingBack -= 1;
    }
  }
}
