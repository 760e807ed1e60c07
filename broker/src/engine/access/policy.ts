import { anonymous, type Caller, type Owner, type Principal } from "./caller.ts";
import type { ClientCertificate } from "./credential.ts";

/**
 * An action that needs a right. `read`: getEvent, getProof, exist, state, list. `administer`: the admin calls, such as the listings of subscriptions and
 * of skipped entries, and metrics. `health`: whether the broker is ready. `inspect`: the details of health. `chain`: read access to the embedded chain.
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

/** The group and topic of an action, unchecked, as the client wrote them. */
export interface Scope {
  /** Undefined for a right on the whole broker. */
  readonly groupId: string | undefined;
  /** Topic or pattern; undefined if the action names none. */
  readonly topic: string | undefined;
}

/** Decides who may do what. Checks of rights are synchronous and change nothing, because every publish needs one. */
export interface Policy {
  /**
   * Finds the principal of a credential, or of a certificate if there is no credential. A wrong credential gives a rejected principal, which has no rights.
   * Returns a promise only if the check takes time; the promise never rejects.
   */
  authenticate(credential: string | undefined, certificate?: ClientCertificate): Principal | Promise<Principal>;
  /** Why a principal has no rights at all, as a text for its client; undefined if it may have some. @throws BrokerError 200207 or 200300 if that is unknown. */
  findFault(principal: Principal): string | undefined;
  /** A warning to the operator; undefined if there is none. */
  findWarning(): string | undefined;
  /** Why the policy refuses everybody at the moment; undefined if it does not. */
  findTrouble(): string | undefined;
  allows(caller: Caller, action: Action, scope: Scope): boolean;
  /** Whether events of a topic may reach an owner's sessions and subscriptions. Asked for each batch, so that delivery ends with the right. */
  mayReceive(owner: Owner, scope: Scope): boolean;
  /** The rules by which {@link mayReceive} decides for an owner: the same object while they do not change. Undefined if the policy cannot tell. */
  rulesOf(owner: Owner): object | undefined;
  /** Whether the broker may make callbacks for an owner's subscriptions at all. If not, the subscriptions keep their cursors. */
  mayDeliver(owner: Owner): boolean;
  /** The principal of an owner, with the rights that it has now. */
  recall(owner: Owner): Principal;
}

export const allowAll: Policy = {
  authenticate: () => anonymous,
  findFault: () => undefined,
  findTrouble: () => undefined,
  findWarning: () => undefined,
  allows: () => true,
  mayReceive: () => true,
  rulesOf: () => undefined,
  mayDeliver: () => true,
  recall: () => anonymous,
};
