import { Stele, SteleError } from "@stele/client";
import { brokerUrl, consolePath } from "./addresses.ts";

/** The broker's code for a credential that is missing or wrong. */
const credentialRefused = 100701;

/** Of this tab alone, and gone with it. Brokers under one origin have keys of their own. */
const storageName = `stele-key:${consolePath}`;

/** How often the client repeats a call before a person sees that it fails. */
const retries = 1;

export interface SessionState {
  readonly stele: Stele;
  readonly hasKey: boolean;
  /** Whether the broker wants another key than it got. */
  readonly isKeyWanted: boolean;
  /** Whether a person has allowed changes in this tab. */
  readonly isUnlocked: boolean;
}

/** The calls of this tab, with the key that a person gave. */
export class Session {
  readonly #listeners = new Set<() => void>();
  #state = toState(sessionStorage.getItem(storageName) ?? undefined);

  get state(): SessionState {
    return this.#state;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Every later call uses it; undefined forgets the one that there is. */
  setKey(key: string | undefined): void {
    if (key === undefined) sessionStorage.removeItem(storageName);
    else sessionStorage.setItem(storageName, key);
    this.#change(toState(key));
  }

  /** Begins anew with the same key: somebody else has logged in at this host. */
  renew(): void {
    this.#change(toState(sessionStorage.getItem(storageName) ?? undefined));
  }

  setUnlocked(isUnlocked: boolean): void {
    this.#change({ ...this.#state, isUnlocked });
  }

  /** Asks for a key if a call failed for want of one. */
  noteFailure(error: unknown): void {
    if (!(error instanceof SteleError) || error.code !== credentialRefused || this.#state.isKeyWanted) return;
    this.#change({ ...this.#state, isKeyWanted: true });
  }

  #change(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

function toState(key: string | undefined): SessionState {
  return {
    stele: new Stele({ url: brokerUrl, key, retries }),
    hasKey: key !== undefined,
    isKeyWanted: false,
    isUnlocked: false,
  };
}
