import type { NodeId } from "../../domain/node.ts";
import type { Hint } from "../../ports/coordinator.ts";

/** One membership of this node, from a joining to its end. */
export interface Membership {
  readonly nodeId: NodeId;
  /**
   * Whether nobody else can have taken what this node holds, by this node's own clock that only grows. Once it is false it stays so. To be
   * asked in the same turn in which something is done that no other node may do.
   */
  isLive(): boolean;
  /** Aborts when it has ended: whatever the node held may be another's by now. */
  readonly ended: AbortSignal;
}

/** This node's place among those that share the store. */
export interface Member {
  /** The live membership; waits for one. Undefined when `signal` aborts first. */
  membership(signal: AbortSignal): Promise<Membership | undefined>;
  /** Tells of hints of the coordinator, and of a joining as a hint of kind "nodes", until the answer is called. */
  onHint(listener: (hint: Hint) => void): () => void;
}
