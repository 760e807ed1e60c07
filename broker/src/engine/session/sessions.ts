import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Access } from "../access/access.ts";
import { anonymous, type Caller, type Principal } from "../access/caller.ts";
import type { Groups } from "../group.ts";
import type { Attachment, AttachOrder } from "../broker.ts";
import type { Peer } from "./peer.ts";
import { Session, type SessionParts } from "./session.ts";

/** Sessions of one node, connected or not; each takes about 2 KiB and what its filters take. */
export const sessionsMax = 20_000;

/** Filters of one session. */
export const sessionFiltersMax = 1_000;

/** A timer takes no longer delay; a session that is to live longer than 24 days lives until the process ends. */
const timerMsMax = 2 ** 31 - 1;

export interface SessionsParts {
  readonly groups: Groups;
  readonly clock: Clock;
  readonly access: Access;
  /** What a session of a group works with, given which topics may reach it. */
  readonly toSessionParts: (groupId: GroupId, mayReceive: (topic: TopicName) => boolean) => SessionParts;
}

interface Kept {
  readonly session: Session;
  principal: Principal;
  peer: Peer | undefined;
  will: AttachOrder["will"];
  cancelExpiry: () => void;
  cancelWill: () => void;
}

const nothing = (): void => {};

/** The sessions of this node, by group and name. They live in memory: they outlast connections, and not the process. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #kept = new Map<string, Kept>();

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Takes over from the connection that has the session. @throws BrokerError 200211, 200205, 200300. */
  attach(caller: Caller, order: AttachOrder, peer: Peer): Attachment {
    const { access, groups } = this.#parts;
    const { id } = groups.get(order.groupId);
    const name = `${id}/${order.key}`;
    const known = this.#takeOver(name, order.isClean);
    const kept = known ?? this.#create(name, id);
    kept.principal = caller.principal;
    kept.peer = peer;
    kept.will = order.will;
    order.onConnected(known !== undefined);
    kept.session.connect(peer, order.windowMax);
    return {
      session: kept.session,
      subscribe: (filter) => {
        access.authorize(caller, "subscribe", { groupId: id, topic: filter.filter });
        return kept.session.subscribe(filter);
      },
      isPresent: known !== undefined,
      detach: (leave) => {
        if (kept.peer === peer) this.#detach(name, kept, leave);
      },
    };
  }

  /** Ends every connection. */
  stop(): void {
    for (const [name, kept] of this.#kept) {
      kept.peer?.ended("stopping");
      this.#drop(name, kept);
    }
  }

  /** The session that goes on, now without a peer; undefined where a new one begins. */
  #takeOver(name: string, isClean: boolean): Kept | undefined {
    const kept = this.#kept.get(name);
    if (kept === undefined) return undefined;
    kept.cancelExpiry();
    const { peer } = kept;
    if (peer !== undefined) {
      kept.peer = undefined;
      peer.ended("taken-over");
      kept.session.disconnect();
      if (kept.will !== undefined && (isClean || kept.will.delayMs === 0)) publishWill(kept);
    }
    if (isClean) {
      this.#end(name, kept);
      return undefined;
    }
    kept.cancelWill();
    kept.will = undefined;
    return kept;
  }

  #create(name: string, groupId: GroupId): Kept {
    if (this.#kept.size >= sessionsMax) {
      throw new BrokerError("busy", { details: `${sessionsMax} sessions are kept at this node` });
    }
    const { access, toSessionParts } = this.#parts;
    // Asked of whoever has the session at that time.
    const mayReceive = (topic: TopicName): boolean => access.receiverFor(kept.principal, groupId)(topic);
    const session = new Session(toSessionParts(groupId, mayReceive));
    const kept: Kept = {
      session,
      principal: anonymous,
      peer: undefined,
      will: undefined,
      cancelExpiry: nothing,
      cancelWill: nothing,
    };
    this.#kept.set(name, kept);
    return kept;
  }

  #detach(name: string, kept: Kept, leave: { readonly expiryMs: number; readonly isRegular: boolean }): void {
    const { clock } = this.#parts;
    kept.peer = undefined;
    kept.session.disconnect();
    if (leave.isRegular) kept.will = undefined;
    if (leave.expiryMs === 0) {
      this.#end(name, kept);
      return;
    }
    if (kept.will !== undefined) {
      if (kept.will.delayMs === 0) publishWill(kept);
      else kept.cancelWill = clock.after(Math.min(kept.will.delayMs, timerMsMax), () => publishWill(kept));
    }
    if (leave.expiryMs <= timerMsMax) kept.cancelExpiry = clock.after(leave.expiryMs, () => this.#end(name, kept));
  }

  /** The session ends, and so its will is due. */
  #end(name: string, kept: Kept): void {
    publishWill(kept);
    this.#drop(name, kept);
  }

  #drop(name: string, kept: Kept): void {
    kept.cancelExpiry();
    kept.cancelWill();
    kept.session.remove();
    if (this.#kept.get(name) === kept) this.#kept.delete(name);
  }
}

function publishWill(kept: Kept): void {
  kept.cancelWill();
  kept.will?.publish();
  kept.will = undefined;
}
