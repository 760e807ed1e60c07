import type { CancelSignal } from "../../../lib/cancellation.ts";
import type { GroupId } from "../../../domain/group-id.ts";
import type { TopicFilter } from "../../../domain/topic-filter.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import { Semaphore } from "../../../lib/semaphore.ts";
import { SingleFlight } from "../../../lib/single-flight.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { ShareStore } from "../../../ports/share-store.ts";
import { storeTurnsMax } from "../stored/store-turns.ts";
import { Share, type ShareParts } from "./share.ts";
import type { ShareMember } from "./share-member.ts";

export interface SharesParts {
  readonly store: { readonly shares: Pick<ShareStore, "findReturning"> };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly toShareParts: (groupId: GroupId) => Omit<ShareParts, "reads" | "takes">;
  /** Whether nodes share the store. */
  readonly isShared: boolean;
  /** Aborts when the process ends. */
  readonly signal: CancelSignal;
}

/** Time between two checks whether other nodes returned events, in milliseconds. A node knows at once which events its own connections returned. */
const checkIntervalMs = 1_000;

/** Rounds per check of a single node, except after a failure. A check reads all unacknowledged events of its shares, in SQLite on the main thread. */
const loneCheckEvery = 60;

/** The shares of one group that have members at this node, by the text of their filters: `$share/name/filter`. */
export class Shares {
  readonly #groupId: GroupId;
  readonly #parts: SharesParts;
  readonly #shares = new Map<TopicFilter, Share>();
  readonly #trouble: ReportedTrouble;
  /** One read of the store finds all shares with returned events: with a read per share, each client that disconnects would cost thousands of reads. */
  readonly #checks = new SingleFlight(() => this.#check());
  /** One for reads and one for takes: otherwise a client that joins 1,000 shares would delay the events of all other shares. */
  readonly #turns = { reads: new Semaphore(storeTurnsMax), takes: new Semaphore(storeTurnsMax) };
  #isChecking = false;
  #isStopped = false;

  constructor(groupId: GroupId, parts: SharesParts) {
    this.#groupId = groupId;
    this.#parts = parts;
    this.#trouble = new ReportedTrouble(
      parts.logger,
      "returned events of shares not read, trying again",
      "returned events of shares read again",
    );
  }

  /** Adds a member. Call it once the store has the member's filter. */
  join(text: TopicFilter, member: ShareMember): void {
    const share = this.#shares.get(text) ?? this.#create(text);
    share.add(member);
    if (!this.#isChecking) void this.#checkOften();
  }

  leave(text: TopicFilter, member: ShareMember): void {
    const share = this.#shares.get(text);
    share?.delete(member);
    if (share?.isEmpty !== true) return;
    this.#shares.delete(text);
    void share.close(this.#parts.signal);
  }

  /** See {@link Share.wakeFor}. */
  wake(text: TopicFilter, member: ShareMember): void {
    this.#shares.get(text)?.wakeFor(member);
  }

  /** Looks for returned events. Call it when the connection of a session has ended: its end may return events. */
  checkReturned(): void {
    if (this.#shares.size > 0 && !this.#parts.signal.aborted) void this.#checks.read();
  }

  /** See {@link Readers.stop}. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#shares.values()].map(async (share) => share.stop()));
  }

  /** See {@link Readers.restart}. */
  restart(): void {
    this.#isStopped = false;
    for (const share of this.#shares.values()) share.start();
  }

  #create(text: TopicFilter): Share {
    const parts = { ...this.#parts.toShareParts(this.#groupId), ...this.#turns };
    const share = new Share(this.#groupId, text, parts);
    this.#shares.set(text, share);
    if (!this.#isStopped) share.start();
    return share;
  }

  /** Never rejects. */
  async #checkOften(): Promise<void> {
    const { clock, signal, isShared } = this.#parts;
    this.#isChecking = true;
    for (let round = 1; this.#shares.size > 0 && !signal.aborted; round += 1) {
      await pause(clock, checkIntervalMs, signal);
      const isDue = isShared || this.#trouble.reason !== undefined || round % loneCheckEvery === 0;
      if (isDue) await this.#checks.read();
    }
    this.#isChecking = false;
  }

  /** Never rejects. Leaves out shares whose identifiers are not known yet: each checks by itself once it has read its identifier. */
  async #check(): Promise<void> {
    const byId = new Map([...this.#shares.values()].map((share) => [share.id, share]));
    const ids = [...byId.keys()].filter((id) => id !== undefined);
    try {
      for (const id of await this.#parts.store.shares.findReturning(ids)) byId.get(id)?.checkReturned();
      this.#trouble.done();
    } catch (error) {
      this.#trouble.failed(error);
    }
  }
}
