import type { Clock } from "../../ports/clock.ts";
import type { HeldKey, PublishKey, PublishKeys } from "../../ports/publish-keys.ts";
import type { Claim } from "./claim.ts";

/** Wait between two tries to free keys, in milliseconds. */
const tryEveryMs = 1_000;

/** Maximum number of keys that wait to be freed. Further ones stay until this node leaves, or until they expire. */
const unsureKeysMax = 1_000;

export interface UnsureKeysOptions {
  readonly keys: Pick<PublishKeys, "releasePublishKeys">;
  readonly clock: Clock;
}

interface Unsure {
  readonly key: HeldKey;
  readonly mayStart: Claim["mayStart"];
  /** Whether the write that may have recorded the key has ended. */
  isWritten: boolean;
}

/** A key under whose token nothing was published. */
export interface UnusedKey extends Pick<Claim, "mayStart"> {
  readonly row: HeldKey;
}

/**
 * Keys that the store may hold although nothing is published under their tokens: the answer to a write of them was lost, or this node could not free them after
 * a refusal. No other node can find that out, so this node frees them. Otherwise repeats at other nodes, and wills that other nodes publish, would wait until
 * this node leaves.
 */
export class UnsureKeys {
  readonly #options: UnsureKeysOptions;
  readonly #byToken = new Map<string, Unsure>();
  /**
   * Keys that writes under way may still record, with the number of these writes. Must not forget a key: its event could be published twice. Needs no limit:
   * each transaction begins one such write at most, and occupies one of `transactionsInFlightMax` places until it gives up after ten seconds. So in each ten
   * seconds without an answer of the store, the map grows by the keys of that many transactions at most.
   */
  readonly #writing = new Map<string, number>();
  #cancel: (() => void) | undefined;
  #isFreeing = false;
  #isStopped = false;

  constructor(options: UnsureKeysOptions) {
    this.#options = options;
  }

  /** The senders of the keys by token: nothing was published under these tokens, unless another node takes a key over meanwhile, with its own sender. */
  senders(): ReadonlyMap<string, string> {
    const own = [...this.#byToken.values()].filter(isOwn);
    return new Map(own.map(({ key }) => [key.token, key.sender]));
  }

  /** Whether a write that has not ended may still record the key. */
  mayBeRecorded(key: PublishKey): boolean {
    return this.#writing.has(idOf(key));
  }

  /** Frees keys once `writing`, which may still record them, has ended. Tries again until the store answers. */
  add(unused: readonly UnusedKey[], writing: Promise<unknown>): void {
    const added: Unsure[] = [];
    const ids = unused.map(({ row }) => idOf(row));
    for (const id of ids) this.#writing.set(id, (this.#writing.get(id) ?? 0) + 1);
    for (const { row, mayStart } of unused) {
      if (this.#byToken.size >= unsureKeysMax) break;
      const { groupId, scope, key, token, sender } = row;
      const unsure = { key: { groupId, scope, key, token, sender }, mayStart, isWritten: false };
      this.#byToken.set(token, unsure);
      added.push(unsure);
    }
    const onWritten = (): void => {
      for (const id of ids) this.#endWriting(id);
      for (const unsure of added) unsure.isWritten = true;
      if (this.#cancel === undefined && !this.#isFreeing && !this.#isStopped) void this.#free();
    };
    writing.then(onWritten, onWritten);
  }

  /** Frees no more keys. The other nodes find out about the rest when this node has left. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #endWriting(id: string): void {
    const left = (this.#writing.get(id) ?? 0) - 1;
    if (left > 0) this.#writing.set(id, left);
    else this.#writing.delete(id);
  }

  /** Never rejects. */
  async #free(): Promise<void> {
    this.#isFreeing = true;
    const due = [...this.#byToken.values()].filter(({ isWritten }) => isWritten);
    const own = due.filter(isOwn);
    try {
      if (own.length > 0) await this.#options.keys.releasePublishKeys(own.map(({ key }) => key));
      for (const { key } of due) this.#byToken.delete(key.token);
    } catch {
      // The store is still away.
    }
    this.#isFreeing = false;
    if (this.#isStopped || ![...this.#byToken.values()].some(({ isWritten }) => isWritten)) return;
    this.#cancel = this.#options.clock.after(tryEveryMs, () => {
      this.#cancel = undefined;
      void this.#free();
    });
  }
}

/** Identifies a key in its group. */
export function idOf({ scope, key }: Pick<PublishKey, "scope" | "key">): string {
  return JSON.stringify([scope, key]);
}

/** False once the membership of the claim has ended: another node may have taken the key over. */
function isOwn({ mayStart }: Unsure): boolean {
  return mayStart?.() !== false;
}
