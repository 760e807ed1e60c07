import type { GroupId } from "../../domain/group-id.ts";
import type { Position } from "../../domain/position.ts";

/**
 * All readers of one kind at this node: callback workers, or sessions. The store holds a row for each, with its position. A rollback of the index
 * stops the readers of its group, changes the rows, and restarts the readers from them.
 */
export interface Readers {
  /**
   * Stops every reader of a group, including those that are ending. They note all acknowledged events first. Once the promise has resolved, and until {@link
   * restart}, no reader of the group reads, delivers or notes anything. Never rejects.
   */
  stop(groupId: GroupId): Promise<void>;
  /**
   * Restarts the readers soon, each from its row. The index contains nothing after the group's `progress`, and no rollback has changed it up to
   * `keptUpTo`. A reader without a row forgets only the events that it took after that. Never throws.
   */
  restart(groupId: GroupId, keptUpTo: Position): void;
}
