import { Stele, SteleError } from "@stele/client";
import { brokerUrl, consolePath } from "./addresses.ts";

/** The broker's code for a credential that is missing or wrong. */
const credentialRefused = 100701;

/** Name under which this tab's storage keeps the key. It contains the path, because brokers at one origin have different keys. */
const storageName = `stele-key:${consolePath}`;

/** Pattern of a key: characters that a header can carry. With another key, no call could be made, and nothing would ask for a better one. */
export const keyPattern = String.raw`[\x21-\x7e]+`;

/** How often the client repeats a failed call before a person sees the failure. */
const retries = 1;

/** Longest wait for an answer about health, in milliseconds: a broker that hangs must not look ready. */
const healthMsMax = 10_000;

export interface SessionState {
  readonly stele: Stele;
  /** Tails events: connects until it succeeds, so that a view heals once the broker is back. */
  readonly tailer: Stele;
  /** Asks about health: never repeats a call, and soon gives up. */
  readonly watcher: Stele;
  readonly hasKey: boolean;
  /** Whether the broker refused a call because the key was missing or wrong. */
  readonly isKeyWanted: boolean;
  /** Whether a person has allowed changes in this tab. */
  readonly isUnlocked: boolean;
}

/** The client of this tab, with the key that a person entered. */
export class Session {
  readonly #listeners = new Set<() => void>();
  readonly #storage = findStorage();
  #key = findKey(this.#storage);
  #state = toState(this.#key);

  get state(): SessionState {
    return this.#state;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Sets the key for every later call; undefined forgets the key. */
  setKey(key: string | undefined): void {
    this.#key = key;
    if (key === undefined) this.#storage?.removeItem(storageName);
    else this.#storage?.setItem(storageName, key);
    this.#change(toState(key));
  }

  /** Creates new clients with the same key, locks changes and asks for no key, because somebody has logged in with this browser. */
  renew(): void {
    this.#change(toState(this.#key));
  }

  setUnlocked(isUnlocked: boolean): void {
    this.#change({ ...this.#state, isUnlocked });
  }

  /** Asks for a key if a call failed because the key was missing or wrong. */
  noteFailure(error: unknown): void {
    if (!(error instanceof SteleError) || error.code !== credentialRefused || this.#state.isKeyWanted) return;
    this.#change({ ...this.#state, isKeyWanted: true });
  }

  #change(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

/** The storage of this tab; undefined if the browser forbids the site to store anything. Then the key is forgotten with the page. */
export function findStorage(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}

/** The stored key, unless no request can carry it. */
function findKey(storage: Storage | undefined): string | undefined {
  const key = storage?.getItem(storageName) ?? "";
  return new RegExp(`^${keyPattern}$`).test(key) ? key : undefined;
}

function toState(key: string | undefined): SessionState {
  const options = { url: brokerUrl, key };
  return {
    stele: new Stele({ ...options, retries }),
    tailer: new Stele({ ...options, retries: Number.POSITIVE_INFINITY }),
    watcher: new Stele({ ...options, retries: 0, timeoutMs: healthMsMax }),
    hasKey: key !== undefined,
    isKeyWanted: false,
    isUnlocked: false,
  };
}
