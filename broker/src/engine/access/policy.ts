import { anonymous, type Caller, type Owner, type Principal } from "./caller.ts";
import type { ClientCertificate } from "./credential.ts";

/**
 * What a right is asked for. `read`: getEvent, getProof, exist, state, list. `administer`: the listings of subscriptions and of skipped
 * entries, metrics. `health`: whether the broker serves. `inspect`: why it does, or does not. `chain`: reading the embedded chain itself.
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
  | "inspect"
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
  /**
   * Who gave a credential, or showed a certificate without giving one. What is wrong is remembered in the principal, and refused where a right is
   * asked for. A promise only for what takes time; it never rejects.
   */
  authenticate(credential: string | undefined, certificate?: ClientCertificate): Principal | Promise<Principal>;
  /** Why a principal has no rights at all, in words for its client; undefined where it may be asked for rights. @throws BrokerError 200207. */
  findFault(principal: Principal): string | undefined;
  /** What the operator has to see to; undefined for nothing. */
  findWarning(): string | undefined;
  /** Why everybody is refused at the moment; undefined where nobody is for that. */
  findTrouble(): string | undefined;
  allows(caller: Caller, action: Action, scope: Scope): boolean;
  /** Whether events of a topic may reach what somebody owns. Asked for each batch, so that a right that is taken away ends delivery. */
  mayReceive(owner: Owner, scope: Scope): boolean;
  /** Whether callbacks of an owner are made at all: else its subscriptions wait, and lose nothing. */
  mayDeliver(owner: Owner): boolean;
  /** The principal that owns something, with the rights that it has now. */
  recall(owner: Owner): Principal;
}

export const allowAll: Policy = {
  authenticate: () => anonymous,
  findFault: () => undefined,
  findTrouble: () => undefined,
  findWarning: () => undefined,
  allows: () => true,
  mayReceive: () => true,
  mayDeliver: () => true,
  recall: () => anonymous,
};
