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
  /** @throws BrokerError 200207 if this node is no member. */
  readonly checkMembership: () => void;
  /** Returns a check whether this node still has the membership that it had at the call. Once false, the check stays false. */
  readonly mayStart: () => () => boolean;
}

/** This node as a member of the cluster, and its current membership. */
interface Member {
  readonly current: { readonly nodeId: NodeId; isLive(): boolean } | undefined;
  /** @throws BrokerError 200207 if the node is no member. */
  nodeId(): NodeId;
}

export function createNodesView(
  coordinator: Pick<Coordinator, "listSigners" | "listNodes">,
  findMember: () => Member | undefined,
): NodesView {
  return {
    listSigners: (groupId) => coordinator.listSigners(groupId),
    listMembers: async () => (await coordinator.listNodes()).map(({ id }) => id),
    nodeId: () => findMember()?.current?.nodeId,
    checkMembership: () => void findMember()?.nodeId(),
    mayStart: () => {
      const membership = findMember()?.current;
      return () => membership?.isLive() === true;
    },
  };
}
