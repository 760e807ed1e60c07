import type { GroupId } from "../../domain/group-id.ts";
import type { Coordinator } from "../../ports/coordinator.ts";

/** What a publish has to know of nodes that share the store. */
export interface NodesView {
  /** Accounts with which live nodes sign on the chain of a group. */
  readonly listSigners: (groupId: GroupId) => Promise<readonly string[]>;
  /** Whether this node is the member that it was at the time of the call: once false, it stays so. */
  readonly mayStart: () => () => boolean;
}

/** `findMembership` returns this node's membership at the moment. */
export function createNodesView(
  coordinator: Pick<Coordinator, "listSigners">,
  findMembership: () => { isLive(): boolean } | undefined,
): NodesView {
  return {
    listSigners: (groupId) => coordinator.listSigners(groupId),
    mayStart: () => {
      const membership = findMembership();
      return () => membership?.isLive() === true;
    },
  };
}
