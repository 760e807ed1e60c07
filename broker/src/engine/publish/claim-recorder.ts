import { BrokerError } from "@stele/wire";
import { endOfBlock } from "../../domain/position.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Clock } from "../../ports/clock.ts";
import { type PublishKeys, toFencedKey } from "../../ports/publish-keys.ts";
import type { IndexProgress } from "../index-progress.ts";
import { Deadline } from "../time.ts";
import type { Claim } from "./claim.ts";
import type { Draft, DraftBatch } from "./draft.ts";
import { idOf, UnsureKeys, type UnusedKey } from "./unsure-keys.ts";

/** How long a transaction waits for the store to record the keys of its publishes and of earlier transactions, in milliseconds. */
const recordTimeoutMs = 10_000;

interface Failure {
  /** In milliseconds of the monotonic clock. */
  readonly at: number;
  /** Fails a later publish of the session in the same way. */
  readonly fail: (claim: Claim) => void;
}

export interface ClaimRecorderOptions {
  readonly keys: Pick<PublishKeys, "recordPublishKeys" | "releasePublishKeys">;
  readonly progress: Pick<IndexProgress, "blockNumber">;
  readonly clock: Clock;
  /** Longest wait of a publish for its transaction, in milliseconds. */
  readonly waitMsMax: number;
  /** The group's session time, in milliseconds. */
  readonly readTime: () => Promise<number>;
}

/**
 * Records the keys of a transaction's publishes in one write, before the ledger gets them. A publish whose key is taken, or cannot be recorded, leaves
 * the transaction. Publishes of its session that already wait leave their transactions too: the client repeats all of them, in order.
 * A transaction waits for earlier ones, so that topics keep their order; if no publish has a key, no transaction waits.
 */
export class ClaimRecorder {
  readonly #options: ClaimRecorderOptions;
  /** The last failure to record a key, by session; the oldest first. A take-over of the session counts as a failure. */
  readonly #failures = new Map<string, Failure>();
  readonly #unsure: UnsureKeys;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ClaimRecorderOptions) {
    this.#options = options;
    this.#unsure = new UnsureKeys(options);
  }

  /** Frees a recorded key under which nothing was published, and nothing will be. Tries again until the store answers. */
  free(unused: UnusedKey): void {
    this.#unsure.add([unused], Promise.resolve());
  }

  /** Frees no more keys of failed publishes. */
  stop(): void {
    this.#unsure.stop();
  }

  /** Returns the batches to send; a promise only if a key of this draft or of an earlier one must be recorded. */
  record(draft: Draft): readonly DraftBatch[] | Promise<readonly DraftBatch[]> {
    if (!draft.hasClaims && this.#waiting === 0) return draft.batches;
    this.#waiting += 1;
    const until = this.#options.clock.monotonic() + recordTimeoutMs;
    const recorded = this.#last.then(() => this.#record(draft.batches, until));
    // Runs right before the caller continues: nothing runs between the two, so no later transaction passes this one.
    void recorded.then(() => (this.#waiting -= 1));
    this.#last = recorded;
    return recorded;
  }

  /** Never rejects. */
  async #record(batches: readonly DraftBatch[], until: number): Promise<readonly DraftBatch[]> {
    const claims = batches.flatMap((batch) => batch.claims).filter(({ unrecorded }) => unrecorded !== undefined);
    if (claims.length === 0) return batches;
    const left = new Set<Claim>();
    for (const claim of claims) {
      const failure = this.#failureBefore(claim) ?? this.#findUnanswered(claim);
      if (failure === undefined) continue;
      failure.fail(claim);
      left.add(claim);
    }
    const others = left.size === 0 ? claims : claims.filter((claim) => !left.has(claim));
    if (others.length > 0) for (const claim of await this.#recordAll(others, until)) left.add(claim);
    return left.size === 0 ? batches : batches.flatMap((batch) => batch.without(left) ?? []);
  }

  /** Returns the claims that must leave their transaction. */
  async #recordAll(claims: readonly Claim[], until: number): Promise<readonly Claim[]> {
    const { clock } = this.#options;
    const leftMs = until - clock.monotonic();
    using deadline = new Deadline(clock, leftMs);
    const writing = leftMs > 0 ? this.#write(claims) : undefined;
    try {
      const taken = writing && (await untilAborted(writing, deadline.signal));
      if (taken === undefined)
        throw new BrokerError("busy", { details: "the store did not record the publish key in time" });
      const byKey = new Map(taken.map((row) => [idOf(row), row]));
      const rowOf = ({ unrecorded }: Claim) => unrecorded && byKey.get(idOf(unrecorded));
      this.#note(
        claims.filter((claim) => isFenced(rowOf(claim))),
        failFenced,
      );
      return claims.filter((claim) => isTaken(claim, rowOf(claim)));
    } catch (error) {
      const fail = (claim: Claim): void => claim.onFailed(error);
      this.#note(claims, fail);
      const unused = claims.flatMap(({ unrecorded: row, mayStart }) => (row === undefined ? [] : { row, mayStart }));
      if (writing !== undefined) this.#unsure.add(unused, writing);
      for (const claim of claims) fail(claim);
      return claims;
    }
  }

  /** The last failure of the claim's session, if the claim came before that failure. */
  #failureBefore({ order }: Claim): Failure | undefined {
    const failure = order && this.#failures.get(order.session);
    return failure !== undefined && order !== undefined && order.since <= failure.at ? failure : undefined;
  }

  /**
   * The failure of a session's publish while an earlier write may still record its key: that write would replace this record, and a repeat would publish the
   * event a second time.
   */
  #findUnanswered(claim: Claim): Failure | undefined {
    const { unrecorded } = claim;
    if (unrecorded?.mayReplace !== true || !this.#unsure.mayBeRecorded(unrecorded)) return undefined;
    const details = "the store has not answered about an earlier publish with this key";
    const fail = (one: Claim): void => one.onFailed(new BrokerError("busy", { details }));
    this.#note([claim], fail);
    return { at: this.#options.clock.monotonic(), fail };
  }

  #note(claims: readonly Claim[], fail: Failure["fail"]): void {
    const at = this.#options.clock.monotonic();
    for (const { order } of claims) {
      if (order === undefined) continue;
      this.#failures.delete(order.session);
      this.#failures.set(order.session, { at, fail });
    }
    const { waitMsMax } = this.#options;
    for (const [session, failure] of this.#failures) {
      if (failure.at + waitMsMax + recordTimeoutMs > at) break;
      this.#failures.delete(session);
    }
  }

  /**
   * Records the keys. If a failed claim of this node still holds a key, frees that key and records it again. Returns the other rows that hold one of the keys.
   */
  async #write(claims: readonly Claim[]): Promise<readonly TakenRow[]> {
    // Read the senders before the write: a failed claim that is freed during the write may still hold its key in the store's answer.
    const unsure = this.#unsure.senders();
    const taken = await this.#writeOnce(claims);
    const unused = taken.flatMap((row) => ("token" in row && unsure.get(row.token) === row.sender ? row : []));
    if (unused.length === 0) return taken;
    await this.#options.keys.releasePublishKeys(unused);
    const freed = new Set(unused.map(idOf));
    const again = claims.filter(({ unrecorded }) => unrecorded !== undefined && freed.has(idOf(unrecorded)));
    return [...taken.filter((row) => !freed.has(idOf(row))), ...(await this.#writeOnce(again))];
  }

  async #writeOnce(claims: readonly Claim[]): Promise<readonly TakenRow[]> {
    const { progress, keys, readTime } = this.#options;
    const place = { after: endOfBlock(Math.max(0, progress.blockNumber)), recordedAt: await readTime() };
    const rows = claims.flatMap(({ unrecorded }) => (unrecorded === undefined ? [] : { ...unrecorded, ...place }));
    return keys.recordPublishKeys(rows);
  }
}

type TakenRow = Awaited<ReturnType<PublishKeys["recordPublishKeys"]>>[number];

/** Whether another row has the claim's key, or its session has moved. Notifies the claim of the result. */
function isTaken(claim: Claim, row: TakenRow | undefined): boolean {
  if (row === undefined) claim.onRecorded();
  else claim.onTaken(row);
  return row !== undefined;
}

function isFenced(row: TakenRow | undefined): boolean {
  return row !== undefined && "isFenced" in row;
}

function failFenced(claim: Claim): void {
  if (claim.unrecorded !== undefined) claim.onTaken(toFencedKey(claim.unrecorded));
}
