import { BrokerError, toBrokerError } from "@stele/wire";
import { extensionsBytes } from "../../domain/event-rules.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import { parseSharedFilter } from "../../domain/shared-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Access } from "../access/access.ts";
import { anonymous, type Caller, type Principal } from "../access/caller.ts";
import type { Readers } from "../dispatch/readers.ts";
import type { Groups } from "../group.ts";
import type { Attachment, AttachOrder, WillOrder } from "../broker.ts";
import type { EngineLimits } from "../limits.ts";
import type { Peer } from "./peer.ts";
import type { Wills } from "./wills.ts";
import { type ReaderParts, Session } from "./session.ts";
import { Shares } from "./shares.ts";

/** A timer takes no longer delay; a session that is to live longer than 24 days lives until the process ends. */
const timerMsMax = 2 ** 31 - 1;

export interface SessionsParts {
  readonly limits: EngineLimits;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly access: Access;
  readonly wills: Wills;
  /** What a session or share of a group works with, given which topics may reach it. */
  readonly toSessionParts: (groupId: GroupId, mayReceive: (topic: TopicName) => boolean) => ReaderParts;
}

interface Kept {
  readonly groupId: GroupId;
  readonly session: Session;
  principal: Principal;
  peer: Peer | undefined;
  will: WillOrder | undefined;
  /** How long the session outlives its connection; 0 for not at all. */
  expiryMs: number;
  cancelExpiry: () => void;
  cancelWill: () => void;
}

const nothing = (): void => {};

/** The sessions of this node, by group and name. They live in memory: they outlast connections, and not the process. */
export class Sessions implements Readers {
  readonly #parts: SessionsParts;
  readonly #kept = new Map<string, Kept>();
  /** Those without a connection, the one that has had none for longest first. */
  readonly #detached = new Map<string, Kept>();
  /** Groups whose index rolls back. */
  readonly #stopped = new Set<GroupId>();
  readonly #shares: ReadonlyMap<GroupId, Shares>;
  #willBytes = 0;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#shares = new Map(parts.groups.all.map(({ id }) => [id, new Shares(id, parts.toSessionParts)]));
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Takes over from the connection that has the session. @throws BrokerError 200211, 200205, 200300. */
  async attach(caller: Caller, order: AttachOrder, peer: Peer): Promise<Attachment> {
    const { access, groups } = this.#parts;
    const { id } = groups.get(order.groupId);
    const name = `${id}/${order.key}`;
    this.#checkWill(order.will);
    const known = this.#takeOver(name, order.isClean);
    const kept = known ?? this.#create(name, id);
    kept.principal = caller.principal;
    kept.peer = peer;
    kept.expiryMs = order.expiryMs;
    this.#setWill(kept, order.will);
    const subscribe = (filter: SessionFilter): boolean | BrokerError => {
      try {
        access.authorize(caller, "subscribe", {
          groupId: id,
          topic: parseSharedFilter(filter.filter)?.filter ?? filter.filter,
        });
      } catch (error) {
        return toBrokerError(error);
      }
      return kept.session.subscribe(filter);
    };
    const { session } = kept;
    const isPresent = known !== undefined;
    order.onConnected({ session, isPresent });
    session.connect(peer, order.windowMax);
    return {
      session,
      subscribe: async (orders) => orders.map((one) => subscribe(one)),
      unsubscribe: async (filters) => filters.map((filter) => session.unsubscribe(filter)),
      isPresent,
      detach: (leave) => {
        if (kept.peer === peer) this.#detach(name, kept, leave);
      },
    };
  }

  async stop(groupId: GroupId): Promise<void> {
    this.#stopped.add(groupId);
    const sessions = [...this.#of(groupId)];
    await Promise.all([this.#sharesOf(groupId).stop(), ...sessions.map(async (session) => session.stop())]);
  }

  restart(groupId: GroupId): void {
    this.#stopped.delete(groupId);
    for (const session of this.#of(groupId)) session.restart();
    this.#sharesOf(groupId).restart();
  }

  /** Ends every connection. */
  stopAll(): void {
    for (const [name, kept] of this.#kept) {
      kept.peer?.ended("stopping");
      this.#drop(name, kept);
    }
  }

  #sharesOf(groupId: GroupId): Shares {
    const shares = this.#shares.get(groupId);
    if (shares === undefined) throw new BrokerError("groupUnknown");
    return shares;
  }

  *#of(groupId: GroupId): Iterable<Session> {
    for (const kept of this.#kept.values()) if (kept.groupId === groupId) yield kept.session;
  }

  /** The session that goes on, now without a peer; undefined where a new one begins. */
  #takeOver(name: string, isClean: boolean): Kept | undefined {
    const kept = this.#kept.get(name);
    if (kept === undefined) return undefined;
    kept.cancelExpiry();
    this.#detached.delete(name);
    const { peer } = kept;
    const goesOn = !isClean && (peer === undefined || kept.expiryMs > 0);
    if (peer !== undefined) {
      kept.peer = undefined;
      peer.ended("taken-over");
      kept.session.disconnect();
      if (kept.will?.delayMs === 0) this.#publishWill(kept);
    }
    if (!goesOn) {
      this.#end(name, kept);
      return undefined;
    }
    kept.cancelWill();
    this.#setWill(kept, undefined);
    return kept;
  }

  #create(name: string, groupId: GroupId): Kept {
    this.#makeRoom();
    const { access, toSessionParts } = this.#parts;
    // Asked of whoever has the session at that time.
    const mayReceive = (topic: TopicName): boolean => access.receiverFor(kept.principal, groupId)(topic);
    const parts = { ...toSessionParts(groupId, mayReceive), shares: this.#sharesOf(groupId) };
    const session = new Session(parts, { isStopped: this.#stopped.has(groupId) });
    const kept: Kept = {
      groupId,
      session,
      principal: anonymous,
      peer: undefined,
      will: undefined,
      expiryMs: 0,
      cancelExpiry: nothing,
      cancelWill: nothing,
    };
    this.#kept.set(name, kept);
    return kept;
  }

  /** The session that has had no connection for longest makes room for another. */
  #makeRoom(): void {
    const { sessionsMax } = this.#parts.limits;
    if (this.#kept.size < sessionsMax) return;
    const [oldest] = this.#detached;
    if (oldest === undefined) throw new BrokerError("busy", { details: `${sessionsMax} sessions are connected` });
    this.#end(...oldest);
  }

  #detach(name: string, kept: Kept, leave: { readonly expiryMs: number; readonly isRegular: boolean }): void {
    const { clock } = this.#parts;
    kept.peer = undefined;
    kept.session.disconnect();
    if (leave.isRegular) this.#setWill(kept, undefined);
    if (leave.expiryMs === 0) {
      this.#end(name, kept);
      return;
    }
    if (kept.will !== undefined) {
      if (kept.will.delayMs === 0) this.#publishWill(kept);
      else kept.cancelWill = clock.after(Math.min(kept.will.delayMs, timerMsMax), () => this.#publishWill(kept));
    }
    this.#detached.set(name, kept);
    if (leave.expiryMs <= timerMsMax) kept.cancelExpiry = clock.after(leave.expiryMs, () => this.#end(name, kept));
  }

  /** The session ends, and so its will is due. */
  #end(name: string, kept: Kept): void {
    this.#publishWill(kept);
    this.#drop(name, kept);
  }

  #drop(name: string, kept: Kept): void {
    kept.cancelExpiry();
    kept.cancelWill();
    this.#setWill(kept, undefined);
    kept.session.disconnect();
    kept.session.remove();
    if (this.#kept.get(name) !== kept) return;
    this.#kept.delete(name);
    this.#detached.delete(name);
  }

  #publishWill(kept: Kept): void {
    kept.cancelWill();
    if (kept.will !== undefined) void this.#parts.wills.publish(kept.will, kept.principal);
    this.#setWill(kept, undefined);
  }

  #checkWill(will: WillOrder | undefined): void {
    const { willBytesMax } = this.#parts.limits;
    if (this.#willBytes + willBytes(will) <= willBytesMax) return;
    throw new BrokerError("busy", { details: `the wills kept at this node have ${willBytesMax} bytes` });
  }

  #setWill(kept: Kept, will: WillOrder | undefined): void {
    this.#willBytes += willBytes(will) - willBytes(kept.will);
    kept.will = will;
  }
}

function willBytes(will: WillOrder | undefined): number {
  if (will === undefined) return 0;
  const { topic, content, extensions } = will.call;
  return topic.length + content.byteLength + extensionsBytes(extensions);
}
