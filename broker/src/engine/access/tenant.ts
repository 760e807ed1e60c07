import { TenantNames } from "../../domain/tenant-names.ts";
import type { Known, Owner, Principal } from "./caller.ts";

const known = new WeakMap<Known, TenantNames | undefined>();

/** The names of the principal's tenant; undefined for whoever has none, and so sees every topic under its real name. */
export function namesOf(principal: Principal): TenantNames | undefined {
  if (principal.kind !== "known") return undefined;
  if (!known.has(principal)) known.set(principal, namesOfOwner(principal.id));
  return known.get(principal);
}

/** As {@link namesOf}, by what is stored with everything that a principal owns. */
export function namesOfOwner(owner: Owner): TenantNames | undefined {
  const end = owner.indexOf("/"); // A principal's own name contains none.
  return end < 0 ? undefined : new TenantNames(owner.slice(0, end));
}
