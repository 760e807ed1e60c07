import type { Deliverer } from "../../domain/balance.ts";
import type { ClusterNode, JoiningNode, NodeId } from "../../domain/node.ts";
import type { Clock } from "../../ports/clock.ts";
import { membershipEnded } from "../membership-ended.ts";

interface Member extends ClusterNode, Deliverer {
  readonly expiresAt: number;
}

/** The members of the cluster. One clock decides when each membership expires. */
export class MemoryMembers {
  readonly #clock: Clock;
  readonly #members = new Map<NodeId, Member>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The members that are live. */
  list(): readonly Member[] {
    return [...this.#members.values()].filter(({ id }) => this.isLive(id));
  }

  find(id: NodeId | undefined): ClusterNode | undefined {
    const member = id === undefined ? undefined : this.#members.get(id);
    if (member === undefined || member.expiresAt <= this.#clock.monotonic()) return undefined;
    return { id: member.id, address: member.address, joinedAt: member.joinedAt };
  }

  has(id: NodeId): boolean {
    return this.#members.has(id);
  }

  isLive(id: NodeId | undefined): id is NodeId {
    return this.find(id) !== undefined;
  }

  /** @throws BrokerError 200207 if the node is not a live member. */
  check(id: NodeId): void {
    if (!this.isLive(id)) throw membershipEnded();
  }

  /** Adds a member. Returns false if another live member has the address, unless `replaces` names that member. */
  add({ id, address, replaces = [] }: JoiningNode, lastsMs: number): boolean {
    const others = this.list().filter((member) => member.address === address && member.id !== id);
    if (others.some((member) => !replaces.includes(member.id))) return false;
    for (const other of others) this.remove(other.id);
    const now = this.#clock.monotonic();
    this.#members.set(id, { id, address, joinedAt: now, expiresAt: now + lastsMs, groups: [] });
    return true;
  }

  /** Returns false if the membership has ended. */
  renew(id: NodeId, { lastsMs, groups }: { readonly lastsMs: number } & Pick<Deliverer, "groups">): boolean {
    const member = this.isLive(id) ? this.#members.get(id) : undefined;
    if (member === undefined) return false;
    this.#members.set(id, { ...member, expiresAt: this.#clock.monotonic() + lastsMs, groups });
    return true;
  }

  /** Returns the removed member. */
  remove(id: NodeId): ClusterNode | undefined {
    const member = this.#members.get(id);
    this.#members.delete(id);
    return member;
  }

  /** Removes and returns expired members: all of them, or those of one address. */
  removeExpired(address?: string): readonly ClusterNode[] {
    const expired = [...this.#members.values()].filter((member) => !this.isLive(member.id));
    const removed = expired.filter((member) => address === undefined || member.address === address);
    for (const { id } of removed) this.remove(id);
    return removed;
  }
}
