import type { Clock } from "../../ports/clock.ts";
import type { HeldKey, PublishKeys } from "../../ports/publish-keys.ts";
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

/**
 * Keys that could not be recorded, as far as this node knows: the answer of the store may have been lost. Nothing is published under their tokens, which no
 * other node can find out, so this node frees them. Otherwise repeats at other nodes, and wills that other nodes publish, would wait until this node leaves.
 */
export class UnsureKeys {
  readonly #options: UnsureKeysOptions;
  readonly #byToken = new Map<string, Unsure>();
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

  /** Frees the keys of failed claims once `writing`, which may still record them, has ended. Tries again until the store answers. */
  add(claims: readonly Claim[], writing: Promise<unknown>): void {
    const added: Unsure[] = [];
    for (const { unrecorded, mayStart } of claims) {
      if (unrecorded === undefined || this.#byToken.size >= unsureKeysMax) continue;
      const { groupId, scope, key, token, sender } = unrecorded;
      const unsure = { key: { groupId, scope, key, token, sender }, mayStart, isWritten: false };
      this.#byToken.set(token, unsure);
      added.push(unsure);
    }
    const onWritten = (): void => {
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

/** False once the membership of the claim has ended: another node may have taken the key over. */
function isOwn({ mayStart }: Unsure): boolean {
  return mayStart?.() !== false;
}
