/** One joining of a node to the cluster, as a UUID: a node that lost its membership and joins again is another one. */
export type NodeId = string & { readonly __brand: "NodeId" };

/** A node as the others see it. */
export interface ClusterNode {
  readonly id: NodeId;
  /** Where clients reach it, host:port; no two nodes have the same. */
  readonly address: string;
  /** When it joined, in milliseconds since the epoch, by the coordinator's clock. */
  readonly joinedAt: number;
}

/** A node that is to become a member. */
export interface JoiningNode extends Pick<ClusterNode, "id" | "address"> {
  /** Earlier joinings of the same node, which it holds nothing by any more: one that is a member with its address makes way. */
  readonly replaces?: readonly NodeId[];
}
