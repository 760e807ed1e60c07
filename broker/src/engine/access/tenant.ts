import { TenantNames } from "../../domain/tenant-names.ts";
import type { Known, Owner, Principal } from "./caller.ts";

const known = new WeakMap<Known, TenantNames | undefined>();

/** The names of the principal's tenant; undefined without a tenant: then the principal sees every topic under its real name. */
export function tenantNamesOf(principal: Principal): TenantNames | undefined {
  if (principal.kind !== "known") return undefined;
  if (!known.has(principal)) known.set(principal, tenantNamesOfOwner(principal.id));
  return known.get(principal);
}

/** Like {@link tenantNamesOf}, for the id of an owner. */
export function tenantNamesOfOwner(owner: Owner): TenantNames | undefined {
  const end = owner.indexOf("/"); // A principal's own name contains none.
  return end < 0 ? undefined : new TenantNames(owner.slice(0, end));
}
