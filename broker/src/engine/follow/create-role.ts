import type { GroupLease } from "../../ports/coordinator.ts";
import { Admission, type AdmissionParts } from "./admission.ts";
import { Follower, type FollowerParts } from "./follower.ts";
import { GroupRole, type GroupRoleParts } from "./group-role.ts";
import { LoneRole, type LoneRoleParts } from "./lone-role.ts";
import { Restarter, type RestarterParts } from "./restarter.ts";
import type { Role } from "./role.ts";
import { Watcher, type WatcherParts } from "./watcher.ts";

export type RoleParts = Omit<LoneRoleParts, "lease" | "onIndexed" | "rollBack" | "restarter"> &
  RestarterParts &
  Pick<WatcherParts, "hub"> &
  Pick<AdmissionParts, "group">;

/** Where nodes share the store. */
export type SharedParts = Pick<GroupRoleParts, "coordinator" | "member"> & Pick<AdmissionParts, "records">;

/** Creates what keeps a group's index up to date on this node, alone or with other nodes. */
export function createRole(
  parts: RoleParts,
  shared: SharedParts | undefined,
): { readonly role: Role; readonly admission: Admission | undefined } {
  const restarter = new Restarter(parts);
  if (shared === undefined) {
    const followerParts = toFollowerParts(parts, restarter);
    return { role: new LoneRole({ ...parts, ...followerParts, restarter }), admission: undefined };
  }
  const admission = new Admission({ ...parts, ...shared });
  const watcher = new Watcher({ ...parts, restarter });
  const createFollower = (lease: GroupLease): Follower => new Follower(toFollowerParts(parts, restarter, lease));
  return { role: new GroupRole({ ...parts, ...shared, admission, watcher, createFollower }), admission };
}

function toFollowerParts(parts: RoleParts, restarter: Restarter, lease?: GroupLease): FollowerParts {
  const { hub, groupId } = parts;
  return {
    ...parts,
    lease,
    onIndexed: (batches) => hub.offer(groupId, batches),
    rollBack: (to) => restarter.rollBack(to, lease),
  };
}
