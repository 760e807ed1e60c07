/** Identifies one membership of a node, as a UUID: a node that loses its membership and joins again gets a new identifier. */
export type NodeId = string & { readonly __brand: "NodeId" };

/** A member as other nodes see it. */
export interface ClusterNode {
  readonly id: NodeId;
  /** Address for clients, host:port; unique in the cluster. */
  readonly address: string;
  /** When the node joined, in milliseconds since the epoch, by the coordinator's clock. */
  readonly joinedAt: number;
}

/** A node that wants to become a member. */
export interface JoiningNode extends Pick<ClusterNode, "id" | "address"> {
  /** Earlier memberships of the same node, which it no longer uses. Joining removes the earlier membership that still holds the node's address. */
  readonly replaces?: readonly NodeId[];
}
