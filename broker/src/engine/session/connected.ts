import { BrokerError } from "@stele/wire";
import { extensionsBytes } from "../../domain/event-rules.ts";
import type { NodeId } from "../../domain/node.ts";
import type { SessionProtocol } from "../../domain/subscription.ts";
import { joinTexts } from "../../lib/join-texts.ts";
import type { SessionClaim } from "../../ports/session-store.ts";
import type { Access } from "../access/access.ts";
import type { Caller, Principal } from "../access/caller.ts";
import type { WillRequest } from "../broker.ts";
import type { Group } from "../group.ts";
import type { Lingering } from "./lingering.ts";
import type { Peer } from "./peer.ts";
import type { ConnectedSession } from "../connected-session.ts";
import type { Session } from "./session.ts";
import type { Stream } from "./streams.ts";

/** A session with its connection at this node. */
export interface Connected {
  readonly name: string;
  /** The client's name for the session. */
  readonly key: string;
  readonly group: Group;
  readonly session: Session;
  readonly principal: Principal;
  readonly protocol: SessionProtocol;
  readonly peer: Peer;
  readonly lingering: Lingering;
  will: WillRequest | undefined;
  readonly expiryMs: number;
  /** When the session began, as far as this node knows. Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly owner: NodeId | undefined;
  /** The principal that the session belongs to. The connection may be an admin's. */
  readonly ownedBy: string;
  /** The rules that were last found to cover all filters of a tail. */
  coveredBy?: object | undefined;
}

/** A caller that attaches to a session. */
export interface Attaching {
  readonly name: string;
  readonly group: Group;
  readonly caller: Caller;
  /** The connection that the session had at this node when the attach began. */
  readonly held: Connected | undefined;
  readonly stream: Stream | undefined;
}

export interface Leave {
  readonly expiryMs: number;
  readonly isRegular: boolean;
}

/** The session as listings show it. */
export function toConnectedSession({
  session,
  group,
  protocol,
  createdAt,
  owner,
  ownedBy: principal,
}: Connected): ConnectedSession {
  // Not `session.state`: that encodes all events in flight, and a listing visits every session of the node.
  const { id, epoch } = session.key;
  const fields = { id, cursor: session.cursor, epoch, groupId: group.id, protocol, principal, createdAt, owner };
  const { isStored, isSuspended } = session;
  return {
    session: fields,
    get filters() {
      return session.filterSet.all;
    },
    isStored,
    isSuspended,
    notifiedAt: (filter) => session.filterSet.notifiedAt(filter),
  };
}

/** Checks the rights of a new connection. {@link isStillAdmitted} checks them again later. @throws BrokerError 100701, 100702, 200207. */
export function checkAdmission(known: Connected, access: Access): void {
  access.admit(known);
  if (mayTail(known, access)) return;
  throw new BrokerError("accessDenied", { details: "the right to a part of the tail's topics has ended" });
}

/** Whether the principal of a connection is still admitted, and may still receive the topics that it tails. */
export function isStillAdmitted(known: Connected, access: Access): boolean {
  return access.isAdmitted(known.principal) && mayTail(known, access);
}

/**
 * A tail needs the right to all of its filters: its client could not notice that some events are missing. Checks the filters only if the rules have changed
 * since the last check: a principal may have thousands of tails with a hundred filters each, and is also checked when its credential is about to expire.
 */
function mayTail(known: Connected, access: Access): boolean {
  const { protocol, principal, group, session } = known;
  if (protocol !== "Tail") return true;
  const rules = access.rulesFor(principal);
  if (rules !== undefined && rules === known.coveredBy) return true;
  const mayReceiveAll = access.receiverFor(principal, group.id);
  const isCovered = session.filterSet.all.every(({ filter }) => mayReceiveAll(filter));
  known.coveredBy = isCovered ? rules : undefined;
  return isCovered;
}

/**
 * Whether the store keeps the cursor of a new session. If nodes share the store, another node may roll the index back, and then only the row of a tail
 * shows how far.
 */
export function isKept({ expiryMs, protocol, isStored }: SessionClaim): boolean {
  return expiryMs > 0 || (protocol === "Tail" && isStored);
}

/** A warning about sessions that get no events or are not written; undefined if there are none. */
export function warningOf(all: Iterable<Session>, writer: { findWarning(): string | undefined }): string | undefined {
  let [suspendedCount, shareCount] = [0, 0];
  let suspended: string | undefined;
  let share: string | undefined;
  for (const session of all) {
    if (session.isSuspended) {
      suspendedCount += 1;
      suspended ??= session.filterSet.all[0]?.id ?? session.id;
    }
    for (const text of session.memberships.withoutRights) {
      shareCount += 1;
      share ??= session.filterSet.find(text)?.id;
    }
  }
  return joinTexts([
    writer.findWarning(),
    suspendedWarning(suspendedCount, suspended),
    noRightsWarning(shareCount, share),
  ]);
}

function suspendedWarning(count: number, id: string | undefined): string | undefined {
  if (id === undefined) return undefined;
  return `${count} connected subscriptions are suspended, for example ${id}: their clients rejected an event too often, and get events again once they subscribe again; find out why they reject it`;
}

function noRightsWarning(count: number, id: string | undefined): string | undefined {
  if (id === undefined) return undefined;
  return `${count} connected shared subscriptions get nothing, for example ${id}: the rights of their owners no longer cover their filters; grant the rights again, or unsubscribe`;
}

/** This node's identifier; undefined for a single node, and while the node is not a member. */
export function ownerNow({ nodeId }: { readonly nodeId: () => NodeId | undefined }): NodeId | undefined {
  try {
    return nodeId();
  } catch {
    return undefined;
  }
}

/**
 * Refuses an attach if the node's membership has ended. The end of the membership closed only the connections that existed at that moment.
 * @throws BrokerError 200207.
 */
export function checkMembership(parts: { readonly nodeId: () => NodeId | undefined }, { owner }: SessionClaim): void {
  if (ownerNow(parts) !== owner)
    throw new BrokerError("storeUnreachable", { details: "this node's membership has ended" });
}

/** Bytes that a will takes in memory. */
export function willBytes(will: WillRequest | undefined): number {
  if (will === undefined) return 0;
  const { topic, content, extensions } = will.call;
  return topic.length + content.byteLength + extensionsBytes(extensions);
}
