import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../../domain/group-id.ts";
import type { NodeId } from "../../../domain/node.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Randomness } from "../../../ports/randomness.ts";
import type {
  SessionClaim,
  SessionClaimed,
  SessionGranted,
  SessionId,
  SessionStore,
} from "../../../ports/session-store.ts";
import type { Access } from "../../access/access.ts";
import { overStoredQuota } from "../../access/quotas.ts";
import { type Caller, ownerOf } from "../../access/caller.ts";
import type { AttachRequest } from "../../broker.ts";
import type { Attaching, Connected } from "../connected.ts";
import type { Keeper } from "../session-parts.ts";
import { encodeWill } from "./session-codec.ts";
import type { SessionRoom } from "./session-room.ts";
import type { SessionTimes } from "./session-times.ts";
import { StoreTurns } from "./store-turns.ts";
import type { Streams } from "../streams.ts";

/** Maximum number of tries of a claim while the index rolls back, or other claims take the name. */
const claimsMax = 10;

/** Upper bound of the first epoch. It is random, so that a stale node cannot match a recreated session. */
const firstEpochMax = 2 ** 40;

export interface SessionClaimsParts {
  readonly store: { readonly sessions: Pick<SessionStore, "claimSession" | "saveSessions"> };
  readonly times: SessionTimes;
  readonly streams: Streams;
  readonly room: SessionRoom;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly logger: Logger;
  readonly nodeId: () => NodeId | undefined;
  readonly access: Pick<Access, "storedQuotas">;
  readonly isShared: boolean;
  /** Lets the shares of a group take events of ended sessions back. */
  readonly checkReturned: (groupId: GroupId) => void;
}

interface Claimed {
  readonly claimed: SessionGranted;
  readonly claim: SessionClaim;
}

type ClaimingParts = Pick<Attaching, "group" | "stream"> & { readonly caller: Pick<Caller, "principal"> };
type ClaimRequest = Pick<AttachRequest, "protocol" | "key" | "will" | "expiryMs" | "isClean">;

/** Thrown if the store refused a claim because a new session would be one too many: then it has no session of that name. Clients get `refusal`. */
export class ClaimRefused extends Error {
  readonly refusal: BrokerError;

  constructor(refusal: BrokerError) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** The connection ended before its claim began, so the store knows nothing of it. */
export class ClaimSkipped extends BrokerError {
  constructor() {
    super("busy", { details: "the connection ended before it had its session" });
  }
}

/** Claims sessions in the store for connections. */
export class SessionClaims {
  readonly #parts: SessionClaimsParts;
  /**
   * The newest first: when more clients wait than the store can serve, the oldest are about to give up, and most of their turns would be wasted. Every fourth
   * turn goes to the oldest, so that a client that does not give up gets its session in the end.
   */
  readonly #turns = new StoreTurns({ isNewestFirst: true });
  readonly #keeping = new Map<Connected, Promise<void>>();

  constructor(parts: SessionClaimsParts) {
    this.#parts = parts;
  }

  /** Waits until `attach`, which claims a session, may run. A rollback does not wait for those that wait here. @throws ClaimSkipped; what `attach` throws. */
  async inTurn<T>({ group, caller }: Pick<Attaching, "group" | "caller">, attach: () => Promise<T>): Promise<T> {
    const attached = await this.#turns.run(group.id, attach, caller.signal);
    if (attached === undefined) throw new ClaimSkipped();
    return attached.result;
  }

  /** @throws ClaimRefused over a quota, or if there are too many sessions; BrokerError 200300 if no try succeeds; and what the store throws. */
  async claim(attaching: Attaching, request: AttachRequest): Promise<Claimed> {
    await this.#parts.times.advance(attaching.group.id);
    let details = "";
    for (let tries = 0; tries < claimsMax; tries += 1) {
      const claim = await this.#toClaim(attaching, request);
      const claimed = await this.#parts.store.sessions.claimSession(claim);
      if (claimed.status === "full") {
        const details = "too many disconnected sessions; the broker removes the oldest ones, retry";
        throw new ClaimRefused(new BrokerError("busy", { details }));
      }
      if (claimed.status === "over-quota") throw new ClaimRefused(overStoredQuota(claimed.quota));
      if (claimed.status === "damaged") {
        this.#logDamaged(request);
        this.#parts.checkReturned(attaching.group.id);
      } else if (claimed.status === "resumed" || claimed.status === "begun") return { claimed, claim };
      details = toDetails(claimed.status);
    }
    throw new BrokerError("busy", { details });
  }

  /** Resolves when {@link keep} has ended for a connection; undefined if it does not run. The end of the connection waits for it. */
  keeping(known: Connected): Promise<void> | undefined {
    return this.#keeping.get(known);
  }

  /**
   * Lets `keeper` store the changes of a session that lived only in memory. First creates the session's row; if nodes share the store, every session already
   * has one. Returns false if the index rolls back: then read the row before the next try.
   * @throws BrokerError 200301, 200300 if the store begins no session; and what the store throws.
   */
  async keep(known: Connected, keeper: Keeper): Promise<boolean> {
    const begun = this.#parts.isShared ? this.#saveFirst(known) : this.#begin(known);
    const kept = begun.then((isBegun) => {
      if (isBegun) known.session.keepIn(keeper);
      return isBegun;
    });
    const end = (): void => void this.#keeping.delete(known);
    const ended = kept.then(end, end);
    this.#keeping.set(known, ended);
    known.lingering.add(ended);
    return kept;
  }

  /**
   * Writes the state of a session before it counts as stored. Its row is as old as its connection. After a rollback, a stored session continues from its row,
   * and would get all events again. Returns false while this node has yet to follow a rollback: the state may be ahead of the index, and the session would miss
   * events.
   */
  async #saveFirst({ session, group }: Connected): Promise<boolean> {
    const { epoch } = session.key;
    const isFollowed = (await group.findGeneration()) === group.progress.generation;
    if (!isFollowed || session.key.epoch !== epoch) return false;
    const { state } = session;
    const refused = await this.#parts.store.sessions.saveSessions([state], { isDurable: false });
    if (refused.length > 0 || session.key.epoch !== epoch) return false;
    session.written(state);
    return true;
  }

  async #begin({ group, session, principal, ...request }: Connected): Promise<true> {
    const { id: newId, epoch: newEpoch, taken: position } = session.state;
    const attaching = { group, caller: { principal }, stream: undefined };
    const claim = await this.#toClaim(attaching, { ...request, isClean: true });
    const own = { newId, newEpoch, position, isStored: true, mayBegin: true };
    const claimed = await this.#parts.store.sessions.claimSession({ ...claim, ...own });
    if (claimed.status === "over-quota") throw overStoredQuota(claimed.quota);
    if (claimed.status !== "begun") throw new BrokerError("busy", { details: toDetails(claimed.status) });
    return true;
  }

  async #toClaim({ group, caller, stream }: ClaimingParts, request: ClaimRequest): Promise<SessionClaim> {
    const { randomness, nodeId, clock, isShared, room, streams, times } = this.#parts;
    const { protocol, key, will, expiryMs, isClean } = request;
    const principal = stream?.ownedBy ?? ownerOf(caller.principal);
    return {
      groupId: group.id,
      protocol,
      key,
      principal,
      will: will && encodeWill(will),
      willDelayMs: times.durationFromEnd(will?.delayMs ?? 0),
      expiryMs: times.durationFromEnd(expiryMs),
      newId: randomness.uuid() as SessionId, // Any UUID is a session's identifier.
      willId: randomness.uuid() as SessionId, // Any UUID, as above.
      newEpoch: isShared ? Math.floor(randomness.fraction() * firstEpochMax) : 0,
      ...(await streams.startOf(group, stream)),
      owner: nodeId(),
      now: clock.now(),
      isClean,
      isStream: stream !== undefined,
      isStored: isShared || expiryMs > 0,
      mayBegin: room.mayBegin(group.id),
      mayKeepWill: room.mayKeepWill(group.id),
      quotas: this.#parts.access.storedQuotas(principal, ["sessions"]),
    };
  }

  #logDamaged({ key }: AttachRequest): void {
    const remedy = "its client subscribes again";
    this.#parts.logger.error("session dropped: its row in the store is damaged", { key, remedy });
  }
}

/** Why a claim gave no session. */
function toDetails(status: SessionClaimed["status"]): string {
  if (status === "taken") return "another session takes the name at the same moment";
  return status === "damaged" ? "the row of the session is damaged" : "the index rolls back";
}
