import type { GroupId } from "../domain/group-id.ts";
import type { ClusterNode, JoiningNode, NodeId } from "../domain/node.ts";
import type { Subscription, SubscriptionId } from "../domain/subscription.ts";
import type { Address } from "../domain/topic.ts";
import type { SessionId } from "./session-store.ts";

/** The right to write a group's index. It does not expire: it ends when its holder releases it, or when another node takes it under a higher epoch. */
export interface GroupLease {
  readonly groupId: GroupId;
  readonly nodeId: NodeId;
  readonly epoch: number;
}

/** The parts of a subscription that decide who may write it. */
export type SubscriptionKey = Pick<Subscription, "id" | "epoch">;

/** An active subscription that a node owns. */
export interface OwnedSubscription extends SubscriptionKey {
  readonly groupId: GroupId;
  /** The node that requested it; undefined if none did. */
  readonly wantedBy: NodeId | undefined;
}

/**
 * Result of a claim. `asked`: claim again later. Either a live node owns the subscription, and hands it over when it sees the request. Or the subscription has
 * no owner, but another transaction has locked it for longer than a claim waits.
 */
export type Claim =
  | { readonly status: "owned"; readonly subscription: Subscription }
  | { readonly status: "asked"; readonly owner: NodeId | undefined }
  | { readonly status: "unknown" };

/** A possible change. A hint may come late, twice or not at all; read the current state. */
export type Hint =
  | { readonly kind: "index"; readonly groupId: GroupId }
  | { readonly kind: "subscription"; readonly id: SubscriptionId }
  /** A session was changed, but not by its owner. Without `id`, any session may have been. */
  | { readonly kind: "session"; readonly id?: SessionId }
  /** Nodes, leases, or the owners of many subscriptions have changed. */
  | { readonly kind: "nodes" }
  /** A membership ended. A later hint of kind "nodes" reports that leases and subscriptions of the member have new owners. */
  | ({ readonly kind: "gone" } & Departure)
  | ({ readonly kind: "taken" } & TakeOver)
  /** Nothing changed, but the index lags: this block has long been final on some node's chain. */
  | ({ readonly kind: "ahead" } & ChainAhead);

/** What a listener must check after hints may have been lost. */
export const hintsAfterLoss: readonly Hint[] = [{ kind: "nodes" }, { kind: "session" }];

/** The end of a membership, with what the node held. */
export interface Departure {
  /** `expired`: the node did not renew in time, and was removed or replaced by a node that joined. */
  readonly how: "left" | "expired";
  readonly nodeId: NodeId;
  readonly address: string;
  /** Number of owned subscriptions, in any state. */
  readonly subscriptions: number;
  /** Number of leases. */
  readonly groups: number;
}

/** A node took what had no live owner: a group's lease, or subscriptions that `balance` assigned. */
export interface TakeOver {
  readonly nodeId: NodeId;
  /** The node that had the lease or the subscriptions before; undefined if there was none, or if that node released them. */
  readonly from: NodeId | undefined;
  /** The group of the lease; undefined for subscriptions. */
  readonly groupId: GroupId | undefined;
  /** Number of subscriptions; 0 for a lease. */
  readonly subscriptions: number;
}

/** What a call of `balance` did and found. */
export interface Balanced {
  readonly assigned: number;
  readonly requested: number;
  /** Groups with active callback subscriptions that no member can deliver. Undefined if the call did not count the subscriptions. */
  readonly unserved?: readonly GroupId[] | undefined;
}

/** A block that is final on a node's chain, but not indexed. */
export interface ChainAhead {
  readonly groupId: GroupId;
  readonly blockNumber: number;
}

/** Maximum number of subscriptions that one call of `balance` requests, and that one statement changes. */
export const movesMax = 1_000;

/** Maximum number of subscriptions without a live owner that one call of `balance` assigns. High, because nobody delivers them. */
export const giftsMax = 10_000;

/**
 * Shared state of nodes that use one store: members, group leases, owners of subscriptions. Each call makes its change in one transaction;
 * some calls first remove expired members in another transaction. All calls read only the coordinator's own clock. A member that does not renew in time
 * loses its membership and everything that it holds. Epochs mark its late writes, and the store refuses them.
 *
 * Errors: BrokerError 200207 if the coordinator is unreachable, and from `reserveSigner` and `claim` if the node is not a live member.
 */
export interface Coordinator {
  /**
   * Adds a node as a member for `lastsMs` from now. `taken`: a live member that `node.replaces` does not name has this address. If
   * `node.replaces` names that member, its membership ends: others can take what it held, and its late renewal does not revive it.
   */
  join(node: JoiningNode, lastsMs: number): Promise<"joined" | "taken">;
  /**
   * Extends the membership to `lastsMs` from now, and records which groups the node can deliver. Returns false, without any change, if the
   * membership has ended.
   */
  renew(nodeId: NodeId, what: { readonly lastsMs: number; readonly groups: readonly GroupId[] }): Promise<boolean>;
  /** Ends the membership, frees everything that the node held, and notifies the others. Does nothing for a node that is not a member. */
  leave(nodeId: NodeId): Promise<void>;
  /** The live members, by address. */
  listNodes(): Promise<readonly ClusterNode[]>;

  /**
   * Takes the lease of a group if no live member has it. The holder gets the same lease again. Undefined if another live member has the lease, or if the
   * node is not a live member.
   */
  takeLease(groupId: GroupId, nodeId: NodeId): Promise<GroupLease | undefined>;
  /** The leases that live members have, by group. */
  listLeases(): Promise<readonly GroupLease[]>;
  /** Frees a lease; does nothing if the group has a newer one. */
  releaseLease(lease: GroupLease): Promise<void>;
  /** Sends the hint `ahead` to the other nodes. The holder of the group's lease then checks whether its endpoint lags. */
  reportAhead(ahead: ChainAhead): Promise<void>;
  /** Reserves a signer address on a group's chain for one node. Returns the other live member that has reserved it; undefined on success. */
  reserveSigner(
    signer: { readonly groupId: GroupId; readonly sender: Address },
    nodeId: NodeId,
  ): Promise<ClusterNode | undefined>;
  /** The addresses on a group's chain that live members have reserved, in ascending order. */
  listSigners(groupId: GroupId): Promise<readonly Address[]>;

  /** The active subscriptions that a node owns, by id. */
  listOwned(nodeId: NodeId): Promise<readonly OwnedSubscription[]>;
  /**
   * Makes the node the owner of a subscription under a new epoch, if no live member owns the subscription, or if it is suspended (nobody delivers a suspended
   * one). Otherwise requests it from its owner, unless another live member has already requested it. Changes nothing if the node is the owner.
   */
  claim(id: SubscriptionId, nodeId: NodeId): Promise<Claim>;
  /**
   * Makes the requesting nodes the owners, under a new epoch. Skips subscriptions with another epoch, and those without a request by a live member.
   */
  handOver(keys: readonly SubscriptionKey[]): Promise<void>;
  /** Like handOver, for a node that stops: subscriptions without a request become free under a new epoch, so that others can take them at once. */
  release(keys: readonly SubscriptionKey[]): Promise<void>;
  /**
   * Removes expired members and notifies the others. Assigns every callback subscription without a live owner, in any state, to a member that can deliver its
   * group, at most {@link giftsMax}. Requests subscriptions from members above their target, at most {@link movesMax}. See planBalance for the targets. Does
   * nothing while another node balances, or for a node that is not a live member. If a call found nothing to do, and members and groups stay the same, the next
   * few calls may return without reading the subscriptions.
   */
  balance(nodeId: NodeId): Promise<Balanced>;

  /**
   * Calls `onHint` for changes by any node, this one included, until the returned function is called. Also calls it with {@link hintsAfterLoss}
   * whenever hints may have been lost.
   */
  listen(onHint: (hint: Hint) => void): Promise<() => Promise<void>>;
}
