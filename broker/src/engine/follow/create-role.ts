import type { GroupLease } from "../../ports/coordinator.ts";
import { Admission, type AdmissionParts } from "./admission.ts";
import { Follower, type FollowerParts } from "./follower.ts";
import { GoingBack, type GoingBackParts } from "./going-back.ts";
import { GroupRole, type GroupRoleParts } from "./group-role.ts";
import { LoneRole, type LoneRoleParts } from "./lone-role.ts";
import type { Role } from "./role.ts";
import { type RestartWorkers, Watcher } from "./watcher.ts";

export type RoleParts = Omit<LoneRoleParts, "lease" | "onIndexed" | "goBack"> &
  Omit<GoingBackParts, "onUndecided"> &
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
  if (shared === undefined) {
    const followerParts = toFollowerParts(parts, new GoingBack(parts));
    return { role: new LoneRole({ ...parts, ...followerParts }), admission: undefined };
  }
  const admission = new Admission({ ...parts, ...shared });
  const watcher = new Watcher({ ...parts, ...shared });
  const goingBack = new GoingBack({ ...parts, onUndecided: () => watcher.doubt() });
  const createFollower = (lease: GroupLease): Follower => new Follower(toFollowerParts(parts, goingBack, lease));
  return { role: new GroupRole({ ...parts, ...shared, admission, watcher, createFollower }), admission };
}

function toFollowerParts(parts: RoleParts, goingBack: GoingBack, lease?: GroupLease): FollowerParts {
  const { dispatcher, groupId } = parts;
  return {
    ...parts,
    lease,
    onIndexed: (batches) => dispatcher.dispatch(groupId, batches),
    goBack: (to) => goingBack.to(to, lease),
  };
}
