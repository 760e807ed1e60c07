import type { GroupLease } from "../../ports/coordinator.ts";

import { Admission, type AdmissionParts } from "./admission.ts";
import { Follower, type FollowerParts } from "./follower.ts";
import { GoingBack, type GoingBackParts } from "./going-back.ts";
import { GroupRole, type GroupRoleParts } from "./group-role.ts";
import { LoneRole, type LoneRoleParts } from "./lone-role.ts";
import type { Role } from "./role.ts";
import { type RestartWorkers, Watcher } from "./watcher.ts";

export type RoleParts = Omit<LoneRoleParts, "lease" | "onIndexed" | "goBack"> &
  GoingBackParts &
  Pick<AdmissionParts, "group">;

/** What the nodes have in common that share a store. */
export interface SharedParts extends Pick<GroupRoleParts, "coordinator" | "member">, Pick<AdmissionParts, "records"> {
  readonly restartWorkers: RestartWorkers;
}

/** Makes what keeps a group's index on this node, alone or with others. */
export function createRole(
  parts: RoleParts,
  shared: SharedParts | undefined,
): { readonly role: Role; readonly admission: Admission | undefined } {
  const { dispatcher, groupId } = parts;
  const goingBack = new GoingBack(parts);
  const toFollowerParts = (lease?: GroupLease): FollowerParts => ({
    ...parts,
    lease,
    onIndexed: (batches) => dispatcher.dispatch(groupId, batches),
    goBack: (to) => goingBack.to(to, lease),
  });
  if (shared === undefined) return { role: new LoneRole({ ...parts, ...toFollowerParts() }), admission: undefined };
  const admission = new Admission({ ...parts, ...shared });
  const watcher = new Watcher({ ...parts, ...shared });
  const createFollower = (lease: GroupLease): Follower => new Follower(toFollowerParts(lease));
  return { role: new GroupRole({ ...parts, ...shared, admission, watcher, createFollower }), admission };
}
