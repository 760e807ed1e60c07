import type { GroupId } from "../../../domain/group-id.ts";
import type { Address } from "../../../domain/topic.ts";
import { GroupCommit } from "../../../lib/group-commit.ts";
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

/** A change of the journal: the new entry of a nonce; undefined to remove it. */
interface Change {
  readonly nonce: number;
  readonly entry: JournalEntry | undefined;
}

/** Maximum number of changes in one write of the journal. */
const changesPerWriteMax = 1_000;

/** Writes the journal. Changes that arrive during a write go into the next one together, since each write waits for the disk. */
export class JournalWriter {
  readonly #options: JournalWriterOptions;
  readonly #trouble: ReportedTrouble;
  readonly #writes: GroupCommit<Change, unknown>;
  /** The newest change. Never rejects. */
  #newest: Promise<unknown> = Promise.resolve();
  /** Why the latest record of transactions failed. */
  #unrecorded: string | undefined;

  constructor(options: JournalWriterOptions) {
    this.#options = options;
    const message = "journal of transactions not written";
    this.#trouble = new ReportedTrouble(options.logger, message, "journal of transactions written again");
    this.#writes = new GroupCommit({
      commit: (changes) => this.#write(changes),
      itemsMax: changesPerWriteMax,
      mayBeCausedByOneItem: () => false,
    });
  }

  /** Why no transaction can be recorded; undefined once one is. A failed removal does not count: transactions are still sent. */
  get failure(): string | undefined {
    return this.#unrecorded && `the journal of transactions cannot be written: ${this.#unrecorded}`;
  }

  /** The intact entries. Repairs the journal if it has damaged ones. */
  async list(): Promise<readonly JournalEntry[]> {
    const { journal, groupId, sender } = this.#options;
    await this.#newest; // Does not wait until this is idle, since busy publishers make change after change.
    const checked = checkEntries(await journal.listTransactions(groupId, sender));
    if (checked.damaged.length > 0) await this.#repair(checked);
    return checked.intact;
  }

  /** Resolves once all versions of the transaction are on disk. */
  async record({ nonce, variants }: Recordable): Promise<void> {
    if (nonce === undefined || variants.length === 0) throw new Error("only a signed transaction is recorded");
    const { groupId, sender, clock } = this.#options;
    const versions = variants.map(({ hash, raw }) => ({ hash, raw }));
    await this.#change({ nonce, entry: { groupId, sender, nonce, variants: versions, recordedAt: clock.now() } });
  }

  /** Resolves once the entries are removed from the disk. */
  async remove(nonces: readonly number[]): Promise<void> {
    await Promise.all(nonces.map((nonce) => this.#change({ nonce, entry: undefined })));
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

  /** Resolves when no change waits for a write, including changes made meanwhile. After that, the journal may be closed. */
  async idle(): Promise<void> {
    for (let seen: Promise<unknown> | undefined; seen !== this.#newest; ) {
      seen = this.#newest;
      await seen;
    }
  }

  #change(change: Change): Promise<unknown> {
    const written = this.#writes.add(change);
    this.#newest = written.catch(() => undefined);
    return written;
  }

  /** The last change of each nonce counts. */
  async #write(changes: readonly Change[]): Promise<readonly unknown[]> {
    const { journal, groupId, sender } = this.#options;
    const last = new Map(changes.map(({ nonce, entry }) => [nonce, entry]));
    const entries = [...last.values()].flatMap((entry) => entry ?? []);
    const removals = [...last.keys()].filter((nonce) => last.get(nonce) === undefined);
    try {
      if (entries.length > 0) await this.#recordAll(entries);
      if (removals.length > 0) await journal.removeTransactions(groupId, sender, removals);
      if (this.#unrecorded === undefined) this.#trouble.done(); // A removal may succeed on a full disk, if it has nothing to remove.
      return changes;
    } catch (error) {
      this.#trouble.failed(error);
      throw error;
    }
  }

  async #recordAll(entries: readonly JournalEntry[]): Promise<void> {
    try {
      await this.#options.journal.recordTransactions(entries);
      this.#unrecorded = undefined;
    } catch (error) {
      this.#unrecorded = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }
}
