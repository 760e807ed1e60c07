import { extensionsBytes } from "../../domain/event-rules.ts";
import type { Principal } from "../access/caller.ts";
import type { WillOrder } from "../broker.ts";
import type { Group } from "../group.ts";
import type { Peer } from "./peer.ts";
import type { Session } from "./session.ts";

/** A session with its connection at this node. */
export interface Connected {
  readonly name: string;
  readonly group: Group;
  readonly session: Session;
  readonly principal: Principal;
  readonly peer: Peer;
  will: WillOrder | undefined;
  readonly expiryMs: number;
}

export interface Leave {
  readonly expiryMs: number;
  readonly isRegular: boolean;
}

/** What a will takes in memory. */
export function willBytes(will: WillOrder | undefined): number {
  if (will === undefined) return 0;
  const { topic, content, extensions } = will.call;
  return topic.length + content.byteLength + extensionsBytes(extensions);
}
