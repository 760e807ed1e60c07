import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { Coordinator } from "../../ports/coordinator.ts";

/** What a publish must know about the nodes that share the store. */
export interface NodesView {
  /** Lists the accounts with which live nodes sign on the chain of a group. */
  readonly listSigners: (groupId: GroupId) => Promise<readonly string[]>;
  /** Lists the identifiers of live memberships. */
  readonly listMembers: () => Promise<readonly string[]>;
  /** The identifier of this node's current membership, which may have expired; undefined if there is none. */
  readonly nodeId: () => NodeId | undefined;
  /** @throws BrokerError 200207 if this node is not a member. */
  readonly checkMembership: () => void;
  /** Returns a check whether this node still has the membership that it had at the call. Once false, the check stays false. */
  readonly mayStart: () => () => boolean;
}

/** This node as a member of the cluster, and its current membership. */
interface Member {
  readonly current: { readonly nodeId: NodeId; isLive(): boolean } | undefined;
  /** @throws BrokerError 200207 if the node is not a member. */
  nodeId(): NodeId;
}

/** `member` returns this node. A function, because groups get their view before the node can join. */
export function createNodesView(
  coordinator: Pick<Coordinator, "listSigners" | "listNodes">,
  member: () => Member,
): NodesView {
  return {
    listSigners: (groupId) => coordinator.listSigners(groupId),
    listMembers: async () => (await coordinator.listNodes()).map(({ id }) => id),
    nodeId: () => member().current?.nodeId,
    checkMembership: () => void member().nodeId(),
    mayStart: () => {
      const membership = member().current;
      return () => membership?.isLive() === true;
    },
  };
}
