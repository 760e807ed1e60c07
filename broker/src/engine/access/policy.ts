import type { Caller, Principal } from "./caller.ts";

/**
 * What a right is asked for. `read`: getEvent, getProof, exist, state, list. `administer`: the listings of subscriptions and of skipped
 * entries, metrics. `health`: whether the broker serves. `chain`: reading the embedded chain itself.
 */
export type Action =
  | "open"
  | "close"
  | "publish"
  | "subscribe"
  | "unsubscribe"
  | "read"
  | "administer"
  | "health"
  | "chain";

/** What an action touches. Nothing of it is checked yet: it is text as the client wrote it. */
export interface Scope {
  /** Undefined for a right on the whole broker. */
  readonly groupId: string | undefined;
  /** Topic or pattern; undefined where no single one is named. */
  readonly topic: string | undefined;
}

/** Decides who may do what. It answers at once and changes nothing: every publish asks it, in the turn in which it comes. */
export interface Policy {
  allows(caller: Caller, action: Action, scope: Scope): boolean;
  /** Whether events of a topic may reach a subscriber. Asked for each batch, so that a right that is taken away ends delivery. */
  mayReceive(principal: Principal, scope: Scope): boolean;
}

export const allowAll: Policy = { allows: () => true, mayReceive: () => true };
