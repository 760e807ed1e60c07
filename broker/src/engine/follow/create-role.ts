import { Admission, type AdmissionOptions } from "./admission.ts";
import { GroupRole, type GroupRoleOptions } from "./group-role.ts";
import { LoneRole, type LoneRoleOptions } from "./lone-role.ts";
import { Restarter, type RestarterOptions } from "./restarter.ts";
import type { Role } from "./role.ts";
import { Watcher } from "./watcher.ts";

export type RoleOptions = Omit<LoneRoleOptions, "lease" | "restarter"> &
  RestarterOptions &
  Pick<AdmissionOptions, "group">;

/** Options for nodes that share the store. */
export type SharedOptions = Pick<GroupRoleOptions, "coordinator" | "member"> & Pick<AdmissionOptions, "records">;

/** Creates the role that keeps a group's index up to date on this node; `shared` is undefined for a single node. */
export function createRole(
  options: RoleOptions,
  shared: SharedOptions | undefined,
): { readonly role: Role; readonly admission: Admission | undefined } {
  const parts = { ...options, restarter: new Restarter(options) };
  if (shared === undefined) return { role: new LoneRole(parts), admission: undefined };
  const admission = new Admission({ ...options, ...shared });
  return { role: new GroupRole({ ...parts, ...shared, admission, watcher: new Watcher(parts) }), admission };
}
