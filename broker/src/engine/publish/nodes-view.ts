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
  /** Returns a check whether this node still has the membership that it had at the call. Once false, the check stays false. */
  readonly mayStart: () => () => boolean;
}

/** `findMembership` returns this node's current membership. */
export function createNodesView(
  coordinator: Pick<Coordinator, "listSigners" | "listNodes">,
  findMembership: () => { readonly nodeId: NodeId; isLive(): boolean } | undefined,
): NodesView {
  return {
    listSigners: (groupId) => coordinator.listSigners(groupId),
    listMembers: async () => (await coordinator.listNodes()).map(({ id }) => id),
    nodeId: () => findMembership()?.nodeId,
    mayStart: () => {
      const membership = findMembership();
      return () => membership?.isLive() === true;
    },
  };
}
