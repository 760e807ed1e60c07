import type { GroupId } from "../domain/group-id.ts";
import type { NodeId } from "../domain/node.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { Clock } from "../ports/clock.ts";

/** Maximum number of changes that this node remembers; it drops the oldest. */
const changesKeptMax = 100;

/** Maximum number of addresses that this node remembers; it drops the one that was named longest ago. */
const addressesKeptMax = 1_000;

/** A node joined; left; is `gone`, as it did not renew its membership; or took over a group's index or subscriptions. */
export interface MemberChange {
  readonly what: "joined" | "left" | "gone" | "took-over";
  readonly nodeId: NodeId;
  /** The earlier owner; undefined if it is not known. */
  readonly from?: NodeId | undefined;
  /** The group whose index the node took over. */
  readonly groupId?: GroupId | undefined;
  /** How many subscriptions the node took over. */
  readonly subscriptions?: number | undefined;
}

/** A change with the addresses of the nodes, or with their identifiers if this node does not know their addresses. */
export interface SeenMemberChange extends Omit<MemberChange, "nodeId" | "from"> {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly node: string;
  readonly from: string | undefined;
}

/** The newest changes of the cluster that this node has seen since it started. */
export class MemberHistory {
  readonly #clock: Pick<Clock, "now">;
  readonly #addresses = new BoundedMap<NodeId, string>(addressesKeptMax);
  #changes: readonly (MemberChange & { readonly at: number })[] = [];

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Remembers the address of a node, for changes noted earlier or later. */
  name(nodeId: NodeId, address: string): void {
    this.#addresses.set(nodeId, address);
  }

  note(change: MemberChange): void {
    this.#changes = [{ at: this.#clock.now(), ...change }, ...this.#changes].slice(0, changesKeptMax);
  }

  /** Whether the changes contain the end of this membership. */
  hasEnded(nodeId: NodeId): boolean {
    return this.#changes.some(({ what, nodeId: id }) => id === nodeId && (what === "left" || what === "gone"));
  }

  /** Newest first. */
  list(): readonly SeenMemberChange[] {
    return this.#changes.map(({ nodeId, from, ...rest }) => ({
      ...rest,
      node: this.#nameOf(nodeId),
      from: from && this.#nameOf(from),
    }));
  }

  #nameOf(nodeId: NodeId): string {
    return this.#addresses.get(nodeId) ?? nodeId;
  }
}
