import { type BalancePlan, planBalance, type SubscriptionCount } from "../../domain/balance.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { ClusterNode, JoiningNode, NodeId } from "../../domain/node.ts";
import { isCallback, type Subscription, type SubscriptionId } from "../../domain/subscription.ts";
import type { Address } from "../../domain/topic.ts";
import type { Clock } from "../../ports/clock.ts";
import {
  type Balanced,
  type ChainAhead,
  type Claim,
  type Coordinator,
  type Departure,
  type GroupLease,
  type Hint,
  type OwnedSubscription,
  giftsMax,
  movesMax,
  type SubscriptionKey,
} from "../../ports/coordinator.ts";
import { hintsOfMoved, hintsOfTaken, type Reassigned } from "../hints.ts";
import { MemoryHints } from "./memory-hints.ts";
import { MemoryMembers } from "./memory-members.ts";

interface ReservedSigner {
  readonly groupId: GroupId;
  readonly sender: Address;
  readonly nodeId: NodeId;
}

interface Lease {
  readonly nodeId: NodeId | undefined;
  readonly epoch: number;
}

export interface MemoryCoordinatorOptions {
  readonly clock: Clock;
  /** The subscriptions of the store, which the coordinator changes too. */
  readonly subscriptions: Map<SubscriptionId, Subscription>;
}

/** A coordinator of several engines in one process. Each call makes all its changes in one turn of the event loop. */
export class MemoryCoordinator implements Coordinator {
  readonly #subscriptions: Map<SubscriptionId, Subscription>;
  readonly #members: MemoryMembers;
  readonly #hints: MemoryHints;
  readonly #leases = new Map<GroupId, Lease>();
  readonly #signers = new Map<string, ReservedSigner>();
  readonly #wanted = new Map<SubscriptionId, NodeId>();
  #whenGone: (nodeId: NodeId) => void = () => {};

  constructor({ clock, subscriptions }: MemoryCoordinatorOptions) {
    this.#subscriptions = subscriptions;
    this.#members = new MemoryMembers(clock);
    this.#hints = new MemoryHints(clock);
  }

  async join(node: JoiningNode, lastsMs: number): Promise<"joined" | "taken"> {
    const { id, address, replaces = [] } = node;
    for (const former of [id, ...replaces]) if (!this.#members.isLive(former)) this.#members.remove(former);
    for (const other of this.#members.removeExpired(address)) this.#reportGone(other, "expired");
    if (!this.#members.add(node, lastsMs)) return "taken";
    this.send({ kind: "nodes" });
    return "joined";
  }

  async renew(
    nodeId: NodeId,
    what: { readonly lastsMs: number; readonly groups: readonly GroupId[] },
  ): Promise<boolean> {
    return this.#members.renew(nodeId, what);
  }

  async leave(nodeId: NodeId): Promise<void> {
    const node = this.#members.remove(nodeId);
    if (node === undefined) return;
    this.#reportGone(node, "left");
    this.send({ kind: "nodes" });
  }

  async listNodes(): Promise<readonly ClusterNode[]> {
    const nodes = this.#members.list().flatMap(({ id }) => this.#members.find(id) ?? []);
    return nodes.toSorted((left, right) => (left.address < right.address ? -1 : 1));
  }

  async takeLease(groupId: GroupId, nodeId: NodeId): Promise<GroupLease | undefined> {
    const lease = this.#leases.get(groupId);
    if (!this.#members.isLive(nodeId)) return undefined;
    if (lease?.nodeId === nodeId) return { groupId, nodeId, epoch: lease.epoch };
    if (this.#members.isLive(lease?.nodeId)) return undefined;
    const epoch = (lease?.epoch ?? 0) + 1;
    this.#leases.set(groupId, { nodeId, epoch });
    this.send({ kind: "taken", nodeId, from: lease?.nodeId, groupId, subscriptions: 0 });
    return { groupId, nodeId, epoch };
  }

  async listLeases(): Promise<readonly GroupLease[]> {
    const held = [...this.#leases].flatMap(([groupId, { nodeId, epoch }]) =>
      this.#members.isLive(nodeId) ? [{ groupId, nodeId, epoch }] : [],
    );
    return held.toSorted((left, right) => (left.groupId < right.groupId ? -1 : 1));
  }

  async releaseLease(lease: GroupLease): Promise<void> {
    if (!this.isNewest(lease)) return;
    this.#leases.set(lease.groupId, { nodeId: undefined, epoch: lease.epoch });
    this.send({ kind: "nodes" });
  }

  async reportAhead(ahead: ChainAhead): Promise<void> {
    this.send({ kind: "ahead", ...ahead });
  }

  async reserveSigner(
    { groupId, sender }: { readonly groupId: GroupId; readonly sender: Address },
    nodeId: NodeId,
  ): Promise<ClusterNode | undefined> {
    this.#members.check(nodeId);
    const key = `${groupId} ${sender}`;
    const owner = this.#signers.get(key)?.nodeId;
    const other = owner === nodeId ? undefined : this.#members.find(owner);
    if (other === undefined) this.#signers.set(key, { groupId, sender, nodeId });
    return other;
  }

  async listSigners(groupId: GroupId): Promise<readonly Address[]> {
    return [...this.#signers.values()]
      .filter((signer) => signer.groupId === groupId && this.#members.isLive(signer.nodeId))
      .map(({ sender }) => sender)
      .toSorted();
  }

  async listOwned(nodeId: NodeId): Promise<readonly OwnedSubscription[]> {
    return [...this.#subscriptions.values()]
      .filter(({ owner, state }) => owner === nodeId && state === "active")
      .map(({ id, epoch, groupId }) => ({ id, epoch, groupId, wantedBy: this.#wanterOf(id) }))
      .toSorted((left, right) => (left.id < right.id ? -1 : 1));
  }

  async claim(id: SubscriptionId, nodeId: NodeId): Promise<Claim> {
    this.#members.check(nodeId);
    const known = this.#subscriptions.get(id);
    if (known === undefined) return { status: "unknown" };
    if (known.owner === nodeId) return { status: "owned", subscription: known };
    if (!this.#members.isLive(known.owner) || known.state !== "active") {
      this.send({ kind: "subscription", id });
      return { status: "owned", subscription: this.#give(known, nodeId) };
    }
    this.#askFor(id, nodeId);
    return { status: "asked", owner: known.owner };
  }

  async handOver(keys: readonly SubscriptionKey[]): Promise<void> {
    const moved = this.#present(keys).flatMap((known) => {
      const wanter = this.#wanterOf(known.id);
      return wanter === undefined ? [] : [this.#give(known, wanter)];
    });
    for (const hint of hintsOfMoved(moved)) this.send(hint);
  }

  async release(keys: readonly SubscriptionKey[]): Promise<void> {
    const moved = this.#present(keys).map((known) => this.#give(known, this.#wanterOf(known.id)));
    for (const hint of hintsOfMoved(moved)) this.send(hint);
  }

  async balance(nodeId: NodeId): Promise<Balanced> {
    if (!this.#members.isLive(nodeId)) return { assigned: 0, requested: 0 };
    const removed = this.#members.removeExpired();
    for (const node of removed) this.#reportGone(node, "expired");
    const plan = planBalance(
      { nodes: this.#members.list(), counts: this.#counts() },
      { giftsMax, requestsMax: movesMax },
    );
    const done = { assigned: this.#giveOut(plan), requested: this.#ask(plan), unserved: plan.unserved };
    if (removed.length > 0 || done.assigned + done.requested > 0) this.send({ kind: "nodes" });
    return done;
  }

  async listen(onHint: (hint: Hint) => void): Promise<() => Promise<void>> {
    const end = this.#hints.add(onHint);
    return async () => end();
  }

  /** Calls `action` with each member that leaves or expires, except a member that a joining node replaces. */
  onGone(action: (nodeId: NodeId) => void): void {
    this.#whenGone = action;
  }

  /** Whether a node is in the table of members, even if its membership has expired. */
  isMember(nodeId: NodeId): boolean {
    return this.#members.has(nodeId);
  }

  send(hint: Hint): void {
    this.#hints.send(hint);
  }

  /** Whether this is still the newest lease of its group. */
  isNewest({ groupId, nodeId, epoch }: GroupLease): boolean {
    const lease = this.#leases.get(groupId);
    return lease?.nodeId === nodeId && lease.epoch === epoch;
  }

  /** Gives the group's subscriptions that the lease holder does not own a new epoch, so that the store refuses late writes of other nodes. */
  refuseOthers({ groupId, nodeId }: GroupLease): void {
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.groupId !== groupId || subscription.owner === nodeId) continue;
      this.#subscriptions.set(subscription.id, { ...subscription, epoch: subscription.epoch + 1 });
    }
  }

  /** Forgets who claimed a subscription that no longer exists. */
  forgetDeleted(id: SubscriptionId): void {
    if (!this.#subscriptions.has(id)) this.#wanted.delete(id);
  }

  #reportGone({ id: nodeId, address }: ClusterNode, how: Departure["how"]): void {
    this.#whenGone(nodeId);
    const subscriptions = [...this.#subscriptions.values()].filter(({ owner }) => owner === nodeId).length;
    const groups = [...this.#leases.values()].filter((lease) => lease.nodeId === nodeId).length;
    this.send({ kind: "gone", how, nodeId, address, subscriptions, groups });
  }

  #wanterOf(id: SubscriptionId): NodeId | undefined {
    const wanter = this.#wanted.get(id);
    return this.#members.isLive(wanter) ? wanter : undefined;
  }

  /** The given subscriptions that exist with the given epochs. */
  #present(keys: readonly SubscriptionKey[]): readonly Subscription[] {
    return keys.flatMap(({ id, epoch }) => {
      const known = this.#subscriptions.get(id);
      return known?.epoch === epoch ? [known] : [];
    });
  }

  #give(subscription: Subscription, owner: NodeId | undefined): Subscription {
    const given = { ...subscription, owner, epoch: subscription.epoch + 1 };
    this.#subscriptions.set(given.id, given);
    this.#wanted.delete(given.id);
    return given;
  }

  /** Records a claim and sends a hint. Does neither if the claim of a live node waits already, so that hints cannot loop. */
  #askFor(id: SubscriptionId, nodeId: NodeId): void {
    if (this.#wanterOf(id) !== undefined) return;
    this.#wanted.set(id, nodeId);
    this.send({ kind: "subscription", id });
  }

  #giveOut({ gifts }: BalancePlan): number {
    let given = 0;
    const moves: Reassigned[] = [];
    for (const { groupId, state, to, count } of gifts) {
      const orphans = this.#callbacks().filter(
        (one) => one.groupId === groupId && one.state === state && !this.#members.isLive(one.owner),
      );
      for (const orphan of orphans.slice(0, count)) {
        this.#give(orphan, to);
        moves.push({ from: orphan.owner, to });
      }
      given += count;
    }
    for (const hint of hintsOfTaken(moves)) this.send(hint);
    return given;
  }

  #ask({ requests }: BalancePlan): number {
    let asked = 0;
    for (const { groupId, from, to, count } of requests) {
      const settled = this.#callbacks().filter(
        ({ id, owner, state, ...one }) =>
          one.groupId === groupId && owner === from && state === "active" && this.#wanterOf(id) === undefined,
      );
      for (const { id } of settled.slice(0, count)) this.#wanted.set(id, to);
      asked += count;
    }
    return asked;
  }

  #counts(): readonly SubscriptionCount[] {
    return this.#callbacks().map(({ id, groupId, state, owner }) => ({
      groupId,
      state,
      owner,
      wantedBy: this.#wanterOf(id),
      count: 1,
    }));
  }

  #callbacks(): readonly Subscription[] {
    return [...this.#subscriptions.values()].filter(isCallback);
  }
}
