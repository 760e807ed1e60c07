import type { GroupId } from "../domain/group-id.ts";
import type { ClusterNode, JoiningNode, NodeId } from "../domain/node.ts";
import type { Subscription, SubscriptionId } from "../domain/subscription.ts";
import type { Address } from "../domain/topic.ts";

/** The right to write a group's index; it ends when another node takes it, under a higher epoch, and not by the passing of time. */
export interface GroupLease {
  readonly groupId: GroupId;
  readonly nodeId: NodeId;
  readonly epoch: number;
}

/** A subscription by what says who may write it. */
export type SubscriptionKey = Pick<Subscription, "id" | "epoch">;

/** An active subscription that a node owns. */
export interface Holding extends SubscriptionKey {
  readonly groupId: GroupId;
  /** The node that asks for it; undefined when none does. */
  readonly wantedBy: NodeId | undefined;
}

/**
 * What became of a claim. `asked`: to be claimed again, since a live node owns it, and hands it over as soon as it sees that it is asked; or,
 * without an owner, since somebody is changing it for longer than a claim waits.
 */
export type Claim =
  | { readonly status: "held"; readonly subscription: Subscription }
  | { readonly status: "asked"; readonly owner: NodeId | undefined }
  | { readonly status: "unknown" };

/** What may have changed. A hint may come late, twice or not at all; what it is about is to be read. */
export type Hint =
  | { readonly kind: "index"; readonly groupId: GroupId }
  | { readonly kind: "subscription"; readonly id: SubscriptionId }
  /** Nodes, leases, or the owners of many subscriptions. */
  | { readonly kind: "nodes" }
  /** A member is none any more. What it held is told of as a hint of kind "nodes", when it is given to others. */
  | ({ readonly kind: "gone" } & Departure)
  /** Nothing has changed: the index stands still, and this block has long been final on some node's chain. */
  | ({ readonly kind: "ahead" } & ChainAhead);

/** The end of a membership, with what the node held then. */
export interface Departure {
  /** `expired`: it did not renew in time, and was removed or replaced by a node that joined. */
  readonly how: "left" | "expired";
  readonly nodeId: NodeId;
  readonly address: string;
  /** How many it owned, in any state. */
  readonly subscriptions: number;
  /** Of how many it had the lease. */
  readonly groups: number;
}

/** A block that is final on a node's chain, and not indexed. */
export interface ChainAhead {
  readonly groupId: GroupId;
  readonly blockNumber: number;
}

/** Subscriptions that one call of `balance` asks for, at most, and that one statement gives another owner. */
export const movesMax = 1_000;

/** Subscriptions without an owner that one call of `balance` gives out, at most: nobody delivers them meanwhile. */
export const giftsMax = 10_000;

/**
 * What nodes that share a store agree on: who is a member, who follows a group, who delivers a subscription. Every call is one
 * transaction, and only the coordinator's own clock is read. A member that has not renewed for as long as it said is none any more,
 * and whatever it held is free for others; an epoch tells its writes from theirs, and the store refuses them.
 *
 * Errors: BrokerError 200207 when the coordinator cannot be reached, and from `reserveSigner` and `claim` for a node that is no live member.
 */
export interface Coordinator {
  /**
   * Makes a member of a node; it lasts `lastsMs` from now. `taken`: a live member has this address. One that the node replaces leaves by
   * this: what it held is free, and no late renewal brings it back.
   */
  join(node: JoiningNode, lastsMs: number): Promise<"joined" | "taken">;
  /** Makes it last `lastsMs` from now, and tells for which groups the node can deliver. False where membership has ended: then nothing is changed. */
  renew(nodeId: NodeId, what: { readonly lastsMs: number; readonly groups: readonly GroupId[] }): Promise<boolean>;
  /** Ends membership, and sets free what the node held, which others are told of. A node that is no member stays none. */
  leave(nodeId: NodeId): Promise<void>;
  /** The live members, by address. */
  listNodes(): Promise<readonly ClusterNode[]>;

  /** The lease of a group, taken when no live member has it; undefined when another one has. Who has it gets it again as it is. Undefined also for a node that is no live member. */
  takeLease(groupId: GroupId, nodeId: NodeId): Promise<GroupLease | undefined>;
  /** Sets a lease free; one that is no longer the newest stays as it is. */
  releaseLease(lease: GroupLease): Promise<void>;
  /** Hints whoever has the lease of a group that its chain may have fallen behind. */
  tellAhead(ahead: ChainAhead): Promise<void>;
  /** Keeps an address on a group's chain for one node. Answers the other live member that signs with it; undefined when it is kept. */
  reserveSigner(
    signer: { readonly groupId: GroupId; readonly sender: Address },
    nodeId: NodeId,
  ): Promise<ClusterNode | undefined>;
  /** The addresses on a group's chain that are kept for live members, in ascending order. */
  listSigners(groupId: GroupId): Promise<readonly Address[]>;

  /** The active subscriptions that a node owns, by id. */
  listHoldings(nodeId: NodeId): Promise<readonly Holding[]>;
  /**
   * Makes the node the owner of a subscription, in any state, under a new epoch where it was not yet; or asks its owner for it, where that is
   * live and delivers it. A suspended one is given at once, since nobody delivers it. Of several nodes that ask, the first is the one that gets it.
   */
  claim(id: SubscriptionId, nodeId: NodeId): Promise<Claim>;
  /** Makes those that ask for them the owners, under a new epoch; those of another epoch, or for which no live member asks, stay as they are. */
  handOver(keys: readonly SubscriptionKey[]): Promise<void>;
  /** The same for a node that stops: those for which no live member asks are set free, under a new epoch, so that they are given out at once. */
  letGo(keys: readonly SubscriptionKey[]): Promise<void>;
  /**
   * Removes members that are none any more, which others are told of, gives every callback subscription without a live owner, in any state, to a member that can
   * deliver its group, and asks those that own more than their share for the rest: gives at most {@link giftsMax}, asks for at most {@link movesMax}. Shares are even
   * within one for each group. Does nothing while another node does it, or for a node that is no live member. Where members and their
   * groups are as they were when it last found nothing to do, a few calls may go by before it looks at the subscriptions again.
   */
  balance(nodeId: NodeId): Promise<{ readonly given: number; readonly asked: number }>;

  /** Tells of changes by other nodes and by this one until the answer is called; also once after each time that hints may have been lost. */
  listen(onHint: (hint: Hint) => void): Promise<() => Promise<void>>;
}
