import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, Departure, Hint, TakeOver } from "../../ports/coordinator.ts";
import { MemberHistory } from "../member-history.ts";
import type { Member } from "./member.ts";

export interface MemberWatchOptions {
  readonly coordinator: Pick<Coordinator, "listNodes" | "listLeases">;
  readonly member: Pick<Member, "onHint">;
  readonly clock: Clock;
}

/** Records which nodes join and leave, and what they take over from one another. */
export class MemberWatch {
  readonly history: MemberHistory;
  readonly #options: MemberWatchOptions;
  /** The newest holder of each lease. */
  readonly #holders = new Map<GroupId, NodeId>();
  /**
   * The nodes in the last listing, without those that have ended since. Undefined before the first listing, which notes only this node as joined: the others
   * joined earlier.
   */
  #members: Set<NodeId> | undefined;
  /** The number of calls of {@link check} that have begun. */
  #checks = 0;

  constructor(options: MemberWatchOptions) {
    this.#options = options;
    this.history = new MemberHistory(options.clock);
    options.member.onHint((hint) => this.#hear(hint));
  }

  /** Lists the nodes and notes the changes, unless another call begins meanwhile: a listing that is answered late may lack nodes that joined since. */
  async check(own: NodeId): Promise<void> {
    const { coordinator } = this.#options;
    this.#checks += 1;
    const check = this.#checks;
    if (this.#members === undefined) this.#learn(await coordinator.listLeases());
    const listed = await coordinator.listNodes();
    if (check !== this.#checks) return;
    // A node that ended during the call may still be in the answer.
    const nodes = listed.filter(({ id }) => !this.history.hasEnded(id));
    const former = this.#members;
    for (const { id, address } of nodes) {
      this.history.name(id, address);
      const isNew = former === undefined ? id === own : !former.has(id);
      if (isNew) this.history.note({ what: "joined", nodeId: id });
    }
    const ids = new Set(nodes.map(({ id }) => id));
    for (const id of former ?? []) if (!ids.has(id)) this.history.note({ what: "gone", nodeId: id });
    this.#members = ids;
  }

  #learn(leases: Awaited<ReturnType<Coordinator["listLeases"]>>): void {
    for (const { groupId, nodeId } of leases) if (!this.#holders.has(groupId)) this.#holders.set(groupId, nodeId);
  }

  #hear(hint: Hint): void {
    if (hint.kind === "gone") this.#onGone(hint);
    if (hint.kind === "taken") this.#onTaken(hint);
  }

  /** Notes nothing if the last listing does not have the node: the watch has already noted that it is gone, or never saw it. */
  #onGone({ how, nodeId, address }: Departure): void {
    this.history.name(nodeId, address);
    if (this.#members?.delete(nodeId) !== true) return;
    this.history.note({ what: how === "left" ? "left" : "gone", nodeId });
  }

  /** If the former holder released the lease, `from` is undefined; then this notes the last holder that this node saw. */
  #onTaken({ nodeId, from, groupId, subscriptions }: TakeOver): void {
    if (groupId === undefined) {
      this.history.note({ what: "took-over", nodeId, from, subscriptions });
      return;
    }
    const former = from ?? this.#holders.get(groupId);
    this.#holders.set(groupId, nodeId);
    if (former !== nodeId) this.history.note({ what: "took-over", nodeId, from: former, groupId });
  }
}
