import { BrokerError, isBrokerError } from "@stele/wire";
import type { NodeId } from "../../domain/node.ts";
import type { CallbackSubscription, Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Claim, Coordinator } from "../../ports/coordinator.ts";
import type { AcceptedAhead } from "../deliver/accepted-ahead.ts";
import type { EngineLimits } from "../limits.ts";
import type { Ownership } from "../subscribe/ownership.ts";
import { pause } from "../../lib/pause.ts";
import { Deadline } from "../time.ts";
import type { ClusterMember } from "./cluster-member.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Membership } from "./member.ts";

export interface ClaimsOptions {
  readonly coordinator: Coordinator;
  readonly member: ClusterMember;
  readonly deliveries: Deliveries;
  readonly clock: Clock;
  readonly limits: EngineLimits;
}

/** Moves a subscription to the node that received a call about it. */
export class Claims implements Ownership {
  readonly isShared = true;
  readonly #options: ClaimsOptions;

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  async owner(): Promise<NodeId> {
    const { clock, limits } = this.#options;
    using deadline = new Deadline(clock, limits.claimWaitMs);
    return (await this.#membership(deadline.signal)).nodeId;
  }

  async claim(id: SubscriptionId): Promise<void> {
    const { clock, limits } = this.#options;
    using deadline = new Deadline(clock, limits.claimWaitMs);
    const { signal } = deadline;
    for (;;) {
      const claim = await this.#tryToClaim(id, await this.#membership(signal));
      if (claim !== undefined && claim.status !== "asked") return;
      await pause(clock, limits.claimPollMs, signal);
      if (signal.aborted)
        throw new BrokerError("busy", {
          details: "this node did not get the subscription in time from the node that delivers it; retry",
        });
    }
  }

  isOwn({ owner }: Subscription): boolean {
    return this.#options.member.isLive(owner);
  }

  begin(subscription: CallbackSubscription, ahead?: AcceptedAhead): void {
    this.#options.deliveries.begin(subscription, ahead);
  }

  async #membership(signal: AbortSignal): Promise<Membership> {
    const { member } = this.#options;
    const membership = await member.membership(signal);
    if (membership !== undefined) return membership;
    throw new BrokerError("storeUnreachable", { details: member.failure ?? "this node has not joined the others" });
  }

  /**
   * Undefined if the call failed because the membership has ended meanwhile, or because too many calls waited for the coordinator's few connections: an order
   * for many subscriptions claims 32 at once.
   */
  async #tryToClaim(id: SubscriptionId, membership: Membership): Promise<Claim | undefined> {
    try {
      return await this.#options.coordinator.claim(id, membership.nodeId);
    } catch (error) {
      if (membership.isLive() && !isBrokerError(error, "busy")) throw error;
      return undefined;
    }
  }
}
