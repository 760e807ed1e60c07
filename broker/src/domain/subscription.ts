import { BrokerError, quote } from "@stele/wire";
import type { GroupId } from "./group-id.ts";
import type { NodeId } from "./node.ts";
import type { Position } from "./position.ts";
import type { TopicFilter } from "./topic-filter.ts";

/** A subscription's identifier: a UUID in lower case. */
export type SubscriptionId = string & { readonly __brand: "SubscriptionId" };

/** Kinds of listener as the admin listing names them. */
export const interfaceTypes = ["RESTful", "JsonRPC", "MQTT", "STOMP"] as const;
export type InterfaceType = (typeof interfaceTypes)[number];

/**
 * `suspended`: delivery has given up until somebody subscribes again; the cursor stays. `locked`: the secret is kept and cannot be opened, so
 * nothing is delivered until somebody subscribes again with it. `damaged`: the row is not as it was written, so nobody knows how far it is;
 * nothing is delivered until it is removed and made anew. No store keeps the last two: they are found on reading.
 */
export type SubscriptionState = "active" | "suspended" | "locked" | "damaged";

/** A consumer's standing order: what it wants to be told, where, and how far it is. Times are milliseconds since the epoch. */
export interface Subscription {
  readonly id: SubscriptionId;
  readonly groupId: GroupId;
  readonly filter: TopicFilter;
  readonly interfaceType: InterfaceType;
  /** Callback address; empty for a listener that holds a connection. */
  readonly url: string;
  /** Signing secret of the callbacks (Standard Webhooks 1.0), as the subscriber gave it. */
  readonly secret: string | undefined;
  readonly state: SubscriptionState;
  /** Every matching event up to here is acknowledged; none beyond it. */
  readonly cursor: Position;
  /** Matching events acknowledged since the subscription was made. */
  readonly notifiedCount: number;
  /** Time of the newest acknowledged notification; before the first, the time of creation. */
  readonly notifiedAt: number;
  /** Attempts that failed since the last that was accepted, as the store was told last; 0 when the receiver works. */
  readonly failedAttempts: number;
  /** What was waited after them, in milliseconds: delivery gives up after so much of it. */
  readonly failedMs: number;
  readonly createdAt: number;
  /**
   * The node that delivers it, as long as that is a member (see Coordinator.listNodes): a row may still name one that is none any more. Undefined
   * where one process alone has the store, and before it was given to any.
   */
  readonly owner: NodeId | undefined;
  /**
   * Another one with each change of the owner, and with each going back that must refuse an owner's writes: who writes under any but the
   * newest is refused. It is compared for equality alone. One process alone has 0; where nodes share the store it begins at random, below
   * 2^40, so that one that is made anew under the same identifier has none that the removed one had; then it counts up.
   */
  readonly epoch: number;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Checks an identifier; upper case is folded. @throws BrokerError 100503 blank, 100505 not a UUID. */
export function parseSubscriptionId(text: string): SubscriptionId {
  if (text.trim() === "") throw new BrokerError("subscriptionIdBlank");
  const folded = text.toLowerCase();
  if (!uuid.test(folded)) throw new BrokerError("subscriptionIdInvalid", { details: quote(text) });
  return folded as SubscriptionId; // Checked above.
}

/** Longest signing secret, in characters. It stays in memory for as long as its subscription is delivered. */
export const secretCharactersMax = 1024;

/** Bytes in Base64 that stand behind this are what a signature is made with; any other secret is taken as text (Standard Webhooks 1.0). */
const encodedSecretPrefix = "whsec_";
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Refuses a secret that would sign with nothing, or not with what its author meant; the message never holds it. @throws BrokerError 200001. */
export function checkSecret(secret: string | undefined): void {
  if (secret === undefined) return;
  if (secret.trim() === "") throw new BrokerError("parameterInvalid", { details: '"secret" is blank' });
  if (secret.length > secretCharactersMax) {
    const details = `"secret" has ${secret.length} characters, at most ${secretCharactersMax}`;
    throw new BrokerError("parameterInvalid", { details });
  }
  // PostgreSQL stores no text with one.
  if (secret.includes("\0")) throw new BrokerError("parameterInvalid", { details: '"secret" holds a NUL character' });
  if (!secret.startsWith(encodedSecretPrefix)) return;
  const encoded = secret.slice(encodedSecretPrefix.length);
  if (encoded === "" || !base64.test(encoded)) {
    throw new BrokerError("parameterInvalid", { details: `"secret" is not Base64 after ${encodedSecretPrefix}` });
  }
}
