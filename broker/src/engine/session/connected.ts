import { extensionsBytes } from "../../domain/event-rules.ts";
import type { NodeId } from "../../domain/node.ts";
import type { SessionProtocol } from "../../domain/subscription.ts";
import type { Principal } from "../access/caller.ts";
import type { WillOrder } from "../broker.ts";
import type { Group } from "../group.ts";
import type { Peer } from "./peer.ts";
import type { SessionStanding } from "../session-standing.ts";
import type { Session } from "./session.ts";

/** A session with its connection at this node. */
export interface Connected {
  readonly name: string;
  readonly group: Group;
  readonly session: Session;
  readonly principal: Principal;
  readonly protocol: SessionProtocol;
  readonly peer: Peer;
  will: WillOrder | undefined;
  readonly expiryMs: number;
  /** When the session began, as far as this node knows. Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly owner: NodeId | undefined;
}

export interface Leave {
  readonly expiryMs: number;
  readonly isRegular: boolean;
}

/** As the listing shows it. */
export function toStanding({ session, group, protocol, createdAt, owner }: Connected): SessionStanding {
  const { id, cursor, epoch } = session.state;
  const standing = { id, cursor, epoch, groupId: group.id, protocol, createdAt, owner };
  return { session: standing, filters: session.filters, isStored: session.isStored };
}

/** What a will takes in memory. */
export function willBytes(will: WillOrder | undefined): number {
  if (will === undefined) return 0;
  const { topic, content, extensions } = will.call;
  return topic.length + content.byteLength + extensionsBytes(extensions);
}
