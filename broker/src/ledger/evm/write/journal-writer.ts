import type { GroupId } from "../../../domain/group-id.ts";
import type { Address } from "../../../domain/topic.ts";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import type { Logger } from "../../../lib/logger.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Journal, JournalEntry, SignedVariant } from "../../../ports/journal.ts";
import { type CheckedEntries, checkEntries } from "./check-entries.ts";

export interface JournalWriterOptions {
  readonly journal: Journal;
  readonly groupId: GroupId;
  readonly sender: Address;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A signed transaction with all its versions, newest first. */
export interface Recordable {
  readonly nonce: number | undefined;
  readonly variants: readonly SignedVariant[];
}

/** The next write. The last change of each nonce counts. */
interface Batch {
  readonly entries: Map<number, JournalEntry>;
  readonly removals: Set<number>;
  readonly written: Deferred<void>;
}

/** Writes the journal. Changes that arrive during a write go into the next one together, since each write waits for the disk. */
export class JournalWriter {
  readonly #options: JournalWriterOptions;
  readonly #trouble: ReportedTrouble;
  #next: Batch | undefined;
  #running: Promise<void> | undefined;
  /** Why the latest record of transactions failed. */
  #unrecorded: string | undefined;

  constructor(options: JournalWriterOptions) {
    this.#options = options;
    const message = "journal of transactions not written";
    this.#trouble = new ReportedTrouble(options.logger, message, "journal of transactions written again");
  }

  /** Why no transaction can be recorded; undefined once one is. A failed removal does not count: transactions are still sent. */
  get failure(): string | undefined {
    return this.#unrecorded && `the journal of transactions cannot be written: ${this.#unrecorded}`;
  }

  /** The intact entries. Repairs the journal if it has damaged ones. */
  async list(): Promise<readonly JournalEntry[]> {
    const { journal, groupId, sender } = this.#options;
    await this.idle();
    const checked = checkEntries(await journal.listTransactions(groupId, sender));
    if (checked.damaged.length > 0) await this.#repair(checked);
    return checked.intact;
  }

  /** Resolves once all versions of the transaction are on disk. */
  async record({ nonce, variants }: Recordable): Promise<void> {
    if (nonce === undefined || variants.length === 0) throw new Error("only a signed transaction is recorded");
    const { groupId, sender, clock } = this.#options;
    const batch = this.#batch();
    batch.removals.delete(nonce);
    batch.entries.set(nonce, {
      groupId,
      sender,
      nonce,
      variants: variants.map(({ hash, raw }) => ({ hash, raw })),
      recordedAt: clock.now(),
    });
    return batch.written.promise;
  }

  /** Resolves once the entries are removed from the disk. */
  async remove(nonces: readonly number[]): Promise<void> {
    if (nonces.length === 0) return;
    const batch = this.#batch();
    for (const nonce of nonces) {
      batch.entries.delete(nonce);
      batch.removals.add(nonce);
    }
    await batch.written.promise;
  }

  /** Writes the repaired entries, and removes the unreadable ones. Leaves the others alone: they may have changed since they were read. */
  async #repair({ intact, damaged, repaired }: CheckedEntries): Promise<void> {
    const { journal, groupId, sender, logger } = this.#options;
    const nonces = damaged.map(({ nonce }) => nonce);
    logger.error("journal damaged: transactions that cannot be read are not resumed", { groupId, nonces });
    await journal.recordTransactions(repaired);
    const kept = new Set(intact.map(({ nonce }) => nonce));
    await journal.removeTransactions(
      groupId,
      sender,
      nonces.filter((nonce) => !kept.has(nonce)),
    );
  }

  /** Resolves when no write is in progress. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  #batch(): Batch {
    this.#next ??= { entries: new Map(), removals: new Set(), written: createDeferred<void>() };
    this.#running ??= this.#run();
    return this.#next;
  }

  async #run(): Promise<void> {
    const { journal, groupId, sender } = this.#options;
    await Promise.resolve(); // Changes of the same turn of the event loop go into one write.
    for (let batch = this.#take(); batch !== undefined; batch = this.#take()) {
      try {
        if (batch.entries.size > 0) await this.#recordAll(batch);
        if (batch.removals.size > 0) await journal.removeTransactions(groupId, sender, [...batch.removals]);
        if (this.#unrecorded === undefined) this.#trouble.done(); // A removal may succeed on a full disk, if it has nothing to remove.
        batch.written.resolve();
      } catch (error) {
        this.#trouble.failed(error);
        batch.written.reject(error);
      }
    }
    this.#running = undefined;
  }

  async #recordAll({ entries }: Batch): Promise<void> {
    try {
      await this.#options.journal.recordTransactions([...entries.values()]);
      this.#unrecorded = undefined;
    } catch (error) {
      this.#unrecorded = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }

  #take(): Batch | undefined {
    const batch = this.#next;
    this.#next = undefined;
    return batch;
  }
}
