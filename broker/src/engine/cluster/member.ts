import type { NodeId } from "../../domain/node.ts";
import type { Hint } from "../../ports/coordinator.ts";

/** One membership of this node, from a join to its end. */
export interface Membership {
  readonly nodeId: NodeId;
  /**
   * Whether no other node can have taken over, by this node's monotonic clock. Once false, it stays false. Call it in the same turn as the action that only a
   * member may take.
   */
  isLive(): boolean;
  /** Aborts at the end of the membership: another node may own everything that this one held. */
  readonly ended: AbortSignal;
}

/** This node as a member of the cluster. */
export interface Member {
  /** Waits for a live membership; undefined if `signal` aborts first. */
  membership(signal: AbortSignal): Promise<Membership | undefined>;
  /** Passes hints of the coordinator, and a "nodes" hint after each join, until the returned function is called. */
  onHint(listener: (hint: Hint) => void): () => void;
}
