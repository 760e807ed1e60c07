import type { GroupLease } from "../../ports/coordinator.ts";
import { Admission, type AdmissionOptions } from "./admission.ts";
import { Follower, type FollowerOptions } from "./follower.ts";
import { GroupRole, type GroupRoleOptions } from "./group-role.ts";
import { LoneRole, type LoneRoleOptions } from "./lone-role.ts";
import { Restarter, type RestarterOptions } from "./restarter.ts";
import type { Role } from "./role.ts";
import { Watcher, type WatcherOptions } from "./watcher.ts";

export type RoleOptions = Omit<LoneRoleOptions, "lease" | "onIndexed" | "rollBack" | "restart" | "restarter"> &
  RestarterOptions &
  Pick<WatcherOptions, "hub"> &
  Pick<AdmissionOptions, "group">;

/** Options for nodes that share the store. */
export type SharedOptions = Pick<GroupRoleOptions, "coordinator" | "member"> & Pick<AdmissionOptions, "records">;

/** Creates the role that keeps a group's index up to date on this node; `shared` is undefined for a single node. */
export function createRole(
  options: RoleOptions,
  shared: SharedOptions | undefined,
): { readonly role: Role; readonly admission: Admission | undefined } {
  const restarter = new Restarter(options);
  if (shared === undefined) {
    const followerParts = toFollowerParts(options, restarter);
    return { role: new LoneRole({ ...options, ...followerParts, restarter }), admission: undefined };
  }
  const admission = new Admission({ ...options, ...shared });
  const watcher = new Watcher({ ...options, restarter });
  const createFollower = (lease: GroupLease): Follower => new Follower(toFollowerParts(options, restarter, lease));
  return { role: new GroupRole({ ...options, ...shared, admission, watcher, createFollower }), admission };
}

function toFollowerParts(options: RoleOptions, restarter: Restarter, lease?: GroupLease): FollowerOptions {
  const { hub, groupId } = options;
  return {
    ...options,
    lease,
    onIndexed: (batches) => hub.offer(groupId, batches),
    rollBack: (to) => restarter.rollBack(to, lease),
    restart: () => restarter.restart(),
  };
}
