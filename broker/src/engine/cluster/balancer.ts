import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { Logger } from "../../lib/logger.ts";
import { pause } from "../../lib/pause.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { EngineLimits } from "../limits.ts";
import type { Member } from "./member.ts";
import type { MemberWatch } from "./member-watch.ts";
import { Recurrence } from "./recurrence.ts";
import { whileMember } from "./while-member.ts";

/** How long a group may have no node that delivers it before a node logs it, in milliseconds. Starting nodes need time until they deliver their groups. */
const unservedMsMax = 60_000;

/**
 * Wait before a node that has joined again balances, in milliseconds. After an outage of the database, each node has then written its acknowledgements, which
 * it retries within `progressRetryDelayMsMax`, before another node takes over its subscriptions.
 */
const rejoinedRestMs = 1_500;

export interface BalancerOptions {
  readonly coordinator: Coordinator;
  readonly member: Member;
  readonly watch: Pick<MemberWatch, "check">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
}

/** Periodically asks the coordinator to spread subscriptions evenly over the nodes, and has the watch list the nodes. Every node runs a balancer. */
export class Balancer {
  readonly #options: BalancerOptions;
  readonly #recurrence: Recurrence;
  readonly #stopping = new AbortController();
  /** Groups that no node delivers, and when this node first saw that; `undefined` once it is logged. */
  #unserved: ReadonlyMap<GroupId, number | undefined> = new Map();
  #unlisten = (): void => {};

  constructor(options: BalancerOptions) {
    this.#options = options;
    const { balanceEveryMs: everyMs, lookRestMs: restMs } = options.limits;
    this.#recurrence = new Recurrence({
      ...options,
      everyMs,
      restMs,
      failed: "nodes not listed or subscriptions not balanced, trying again",
    });
  }

  start(): void {
    this.#unlisten = this.#options.member.onHint((hint) => {
      if (hint.kind === "nodes") this.lookSoon();
    });
    void this.#run();
  }

  lookSoon(): void {
    this.#recurrence.ask();
  }

  stop(): void {
    this.#unlisten();
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    const { clock, member } = this.#options;
    let isFirst = true;
    await whileMember(member, this.#stopping.signal, async ({ nodeId }, signal) => {
      if (!isFirst) await pause(clock, rejoinedRestMs, signal);
      isFirst = false;
      await this.#recurrence.run(() => this.#look(nodeId), signal);
    });
  }

  async #look(nodeId: NodeId): Promise<void> {
    await Promise.all([this.#balance(nodeId), this.#options.watch.check(nodeId)]);
  }

  async #balance(nodeId: NodeId): Promise<void> {
    const { coordinator, logger } = this.#options;
    const { assigned, requested, unserved } = await coordinator.balance(nodeId);
    if (unserved !== undefined) this.#warn(unserved);
    if (assigned + requested === 0) return;
    logger.info("subscriptions balanced", { given: assigned, asked: requested });
  }

  /** Nothing else would show that a removed or renamed group has left its subscriptions behind. */
  #warn(unserved: readonly GroupId[]): void {
    const { clock, logger } = this.#options;
    const now = clock.monotonic();
    const remedy = "configure a group with this id at a node that can reach its chain, or unSubscribe them";
    const entries = unserved.map((groupId): readonly [GroupId, number | undefined] => {
      const since = this.#unserved.has(groupId) ? this.#unserved.get(groupId) : now;
      if (since === undefined || now - since < unservedMsMax) return [groupId, since];
      logger.warn("subscriptions get no events: no node delivers their group", { groupId, remedy });
      return [groupId, undefined];
    });
    this.#unserved = new Map(entries);
  }
}
