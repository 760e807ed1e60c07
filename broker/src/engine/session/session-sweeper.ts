import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import { pause } from "../../lib/pause.ts";
import type { Clock } from "../../ports/clock.ts";
import { endsAt, type Legacy, type SessionId, type SessionKey } from "../../ports/session-store.ts";
import type { Store } from "../../ports/store.ts";
import type { EngineLimits } from "../limits.ts";
import { decodePrincipal, decodeWill } from "./session-codec.ts";
import type { SessionTimes } from "./session-times.ts";
import type { Wills } from "./wills.ts";

export interface SessionSweeperParts {
  readonly store: Pick<Store, "sessions">;
  readonly times: SessionTimes;
  readonly wills: Wills;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly nodeId: () => NodeId | undefined;
  readonly signal: AbortSignal;
  /** Told of a session that has ended. */
  readonly onEnded: (id: SessionId) => void;
}

/** Time between two looks at which sessions are due, in milliseconds. A node looks at those that left it in time by itself. */
const sweepEveryMs = 1_000;

/** Longest delay that has a timer of its own, in milliseconds: clients that come and go must not pile up timers. The sweep finds the rest. */
const timerMsMax = 10_000;

/** Publishes the wills of sessions without connection, and ends those whose time has passed. */
export class SessionSweeper {
  readonly #parts: SessionSweeperParts;
  readonly #running = new Map<GroupId, Promise<void>>();
  readonly #first = new Map<GroupId, Promise<void>>();

  constructor(parts: SessionSweeperParts) {
    this.#parts = parts;
  }

  begin(groupId: GroupId): void {
    if (!this.#running.has(groupId)) this.#running.set(groupId, this.#run(groupId));
  }

  /** Answers when the connections that an earlier process left have ended. @throws what the store throws. */
  async ready(groupId: GroupId): Promise<void> {
    const known = this.#first.get(groupId);
    if (known !== undefined) return known;
    const first = this.#parts.store.sessions.detachLost(groupId);
    this.#first.set(groupId, first);
    first.catch(() => this.#first.delete(groupId));
    return first;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** Looks at a session that has just lost its connection, after that time. */
  lookAfter(groupId: GroupId, { key, delayMs }: { readonly key: SessionKey; readonly delayMs: number }): void {
    const { clock, signal, logger } = this.#parts;
    if (delayMs > timerMsMax || signal.aborted) return; // the sweep finds it
    const see = (): void => {
      this.#see(groupId, key).catch((error: unknown) => logger.debug("session not seen to", { error }));
    };
    if (delayMs <= 0) {
      see();
      return;
    }
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener("abort", cancel);
      see();
    });
    signal.addEventListener("abort", cancel, { once: true });
  }

  /** Publishes what somebody left. Answers whether it is done with. */
  async publishWill({ will, principal }: Pick<Legacy, "will" | "principal">): Promise<boolean> {
    return will === undefined || this.#parts.wills.publish(decodeWill(will), decodePrincipal(principal));
  }

  /** The session that has had no connection for longest makes room for another. */
  async makeRoom(): Promise<void> {
    const { store, limits } = this.#parts;
    if ((await store.sessions.countSessions()) <= limits.sessionsMax) return;
    const oldest = await store.sessions.findOldestDetached();
    if (oldest !== undefined) await this.#end(oldest);
  }

  async #run(groupId: GroupId): Promise<void> {
    const { signal, clock, logger, times } = this.#parts;
    const trouble = new ReportedTrouble(logger, "sessions not swept", "sessions swept again");
    while (!signal.aborted) {
      try {
        await this.ready(groupId);
        await this.#seeAll(groupId, await times.findDue(groupId));
        trouble.done();
      } catch (error) {
        trouble.failed(error);
      }
      await pause(clock, sweepEveryMs, signal);
    }
  }

  /** All at once: each will waits for its transaction, and many are due after a kill. @throws what one of them throws, when all have ended. */
  async #seeAll(groupId: GroupId, keys: readonly SessionKey[]): Promise<void> {
    const seen = await Promise.allSettled(keys.map((key) => this.#see(groupId, key)));
    const failed = seen.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #see(groupId: GroupId, key: SessionKey): Promise<void> {
    const { store, times } = this.#parts;
    await times.advance(groupId);
    const found = (await store.sessions.findSession(key.id))?.session;
    if (found === undefined || found.epoch !== key.epoch || found.detachedAt === undefined) return;
    const time = await store.sessions.advanceSessionTime(groupId, 0);
    if ((endsAt(found) ?? time) <= time) await this.#end(key);
    else if (found.willDueAt !== undefined && found.willDueAt <= time) await this.#settleWill(key);
    else
      this.lookAfter(groupId, {
        key,
        delayMs: Math.min(found.willDueAt ?? endsAt(found) ?? 0, endsAt(found) ?? 0) - time,
      });
  }

  async #settleWill(key: SessionKey): Promise<void> {
    const { store, nodeId } = this.#parts;
    const taken = await store.sessions.takeDueSession(key, nodeId());
    if (taken !== undefined && (await this.publishWill(taken))) await store.sessions.settleWill(taken);
  }

  async #end(key: SessionKey): Promise<void> {
    const { store, nodeId, onEnded } = this.#parts;
    const taken = await store.sessions.takeDueSession(key, nodeId());
    if (taken === undefined || !(await this.publishWill(taken))) return;
    await store.sessions.removeSession(taken);
    onEnded(taken.id);
  }
}
