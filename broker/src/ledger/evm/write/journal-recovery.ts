import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { JournalWriter } from "./journal-writer.ts";
import { KeptTransactions } from "./kept-transactions.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import { recoverTransaction } from "./recovered-transaction.ts";
import type { Inclusion } from "./transaction-state.ts";

/** Pause before the journal is read again after a failure, in milliseconds. */
const retryMs = 1000;

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
  /** Nonces of lost transactions that are not read from the journal yet. */
  readonly #bringingBack = new Set<number>();

  readonly #stopping = new AbortController();
  readonly #trouble: ReportedTrouble;

  constructor(options: JournalRecoveryOptions) {
    this.#options = options;
    const message = "journal not read, lost transactions are not sent yet, trying again";
    this.#trouble = new ReportedTrouble(options.logger, message, "journal read again");
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Whether transactions that the chain lost are being read from the journal and are not tracked yet. */
  get isBringingBack(): boolean {
    return this.#bringingBack.size > 0;
  }

  /** Resumes the transactions of an earlier run; returns the nonce after the highest in the journal, 0 if the journal is empty. */
  async start(): Promise<number> {
    const { journal, clock, logger, adopt } = this.#options;
    const entries = (await journal?.list()) ?? [];
    for (const entry of entries) adopt(recoverTransaction(entry, { clock, wasFinal: false }));
    if (entries.length > 0)
      logger.info("transactions of an earlier run resumed from the journal", { count: entries.length });
    return (entries.at(-1)?.nonce ?? -1) + 1;
  }

  /** Keeps the journal's entry of a final transaction for some blocks, in case a deep reorg removes the transaction. */
  keep(pending: PendingTransaction, { blockNumber, logs }: Inclusion): void {
    const { nonce, variants, isRecovered, wasFinal } = pending.state;
    const what = wasFinal ? "that the chain lost is included again" : "of an earlier run is included";
    if (isRecovered) this.#options.logger.debug(`transaction ${what}`, { nonce, blockNumber });
    if (nonce === undefined || this.#options.journal === undefined) return;
    const bytes = variants.reduce((sum, { raw }) => sum + raw.length, 0);
    this.#kept.keep({ nonce, blockNumber, bytes });
    const included = variants.find(({ hash }) => hash === logs[0]?.transactionHash);
    // Only the included version: a newer one may be a no-op, which must not use the nonce after a reorg.
    if (included !== undefined && included !== variants[0])
      void this.#options.journal.record({ nonce, variants: [included] }).catch(() => {}); // The journal writer logs it.
  }

  /** Removes the entries of transactions deep below `blockNumber`, and the oldest beyond the bound on bytes, from the journal. */
  prune(blockNumber: number): void {
    const nonces = this.#kept.prune(blockNumber);
    if (nonces.length > 0) void this.forget(nonces);
  }

  /** Resumes the kept transactions of blocks after `blockNumber`, which the chain removed. */
  onReorganised(blockNumber: number): void {
    void this.#bringBack(this.#kept.takeAfter(blockNumber));
  }

  /** Resumes the kept transactions with these nonces. Returns the nonces whose transactions are being resumed, by this call or an earlier one. */
  resume(nonces: readonly number[]): readonly number[] {
    void this.#bringBack(this.#kept.takeNonces(new Set(nonces)));
    return nonces.filter((nonce) => this.#bringingBack.has(nonce));
  }

  /** Removes entries; resolves with whether that succeeded, and never rejects. */
  async forget(nonces: readonly number[]): Promise<boolean> {
    try {
      await this.#options.journal?.remove(nonces);
      return true;
    } catch {
      return false; // The journal writer logs it.
    }
  }

  async #bringBack(nonces: readonly number[]): Promise<void> {
    if (nonces.length === 0) return;
    for (const nonce of nonces) this.#bringingBack.add(nonce);
    const found = await this.#readUntilRead(nonces);
    if (found === undefined) return;
    for (const pending of found) this.#options.adopt(pending);
    for (const nonce of nonces) this.#bringingBack.delete(nonce);
    this.#options.logger.warn("chain lost transactions, sending them again", { count: found.length });
  }

  /** The journal's transactions with these nonces; undefined if `stop` ends the attempts to read them. */
  async #readUntilRead(nonces: readonly number[]): Promise<readonly PendingTransaction[] | undefined> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const found = await this.#read(nonces);
        this.#trouble.done();
        return found;
      } catch (error) {
        this.#trouble.failed(error);
      }
      await pause(clock, retryMs, signal);
    }
    return undefined;
  }

  async #read(nonces: readonly number[]): Promise<readonly PendingTransaction[]> {
    const { journal, clock } = this.#options;
    const wanted = new Set(nonces);
    const entries = ((await journal?.list()) ?? []).filter(({ nonce }) => wanted.has(nonce));
    return entries.map((entry) => recoverTransaction(entry, { clock, wasFinal: true }));
  }
}
