import type { GroupId } from "../../domain/group-id.ts";
import { Balancer } from "./balancer.ts";
import { Claims } from "./claims.ts";
import { ClusterMember, type ClusterMemberOptions } from "./cluster-member.ts";
import { Deliveries, type DeliveriesOptions } from "./deliveries.ts";
import { MemberWatch } from "./member-watch.ts";

export type ClusterDependencies = Omit<ClusterMemberOptions, "readyGroups" | "writeRest"> &
  Omit<DeliveriesOptions, "member">;

/** The parts that a node runs when it shares the store with other nodes. */
export class Cluster {
  readonly member: ClusterMember;
  readonly deliveries: Deliveries;
  readonly claims: Claims;
  readonly watch: MemberWatch;
  readonly #balancer: Balancer;

  constructor(options: ClusterDependencies) {
    const { progressWriter } = options;
    this.member = new ClusterMember({
      ...options,
      readyGroups: () => this.deliveries.readyGroups,
      writeRest: () => progressWriter.flush(),
    });
    const own = { ...options, member: this.member };
    this.deliveries = new Deliveries(own);
    this.claims = new Claims({ ...own, deliveries: this.deliveries });
    this.watch = new MemberWatch(own);
    this.#balancer = new Balancer({ ...own, watch: this.watch });
  }

  /** Call it after the store has started and before any delivery. */
  start(): void {
    this.deliveries.start();
    this.#balancer.start();
    this.member.start();
  }

  /** Begins to deliver a group, and asks for a share of its subscriptions. */
  resume(groupId: GroupId): void {
    this.deliveries.resume(groupId);
    void this.#balanceAfter(this.member.renew());
  }

  /** Accepts no further subscriptions, and asks the balancer to move this node's subscriptions to the others. */
  drain(): void {
    void this.#balanceAfter(this.member.drain());
  }

  async stop(signal: AbortSignal): Promise<void> {
    this.#balancer.stop();
    await this.member.stop(signal);
  }

  async #balanceAfter(renewal: Promise<void>): Promise<void> {
    await renewal;
    this.#balancer.lookSoon();
  }
}
