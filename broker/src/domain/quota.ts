/**
 * Limits for a tenant or a principal. A limit that is left out does not apply. Each node counts rates and connections for itself. A burst may use the whole
 * rate of a second at once.
 */
export interface Quota {
  /** Events published per second. */
  readonly publishesPerSecond?: number | undefined;
  /** Bytes of contents and extensions published per second. */
  readonly bytesPerSecond?: number | undefined;
  /** Open connections of MQTT and STOMP, and open tails. */
  readonly connections?: number | undefined;
  /** Callback attempts per second. */
  readonly callbacksPerSecond?: number | undefined;
  /** Hosts that callbacks go to. */
  readonly callbackHosts?: number | undefined;
  /** Callback subscriptions. */
  readonly subscriptions?: number | undefined;
  /** Sessions in the store. */
  readonly sessions?: number | undefined;
}

/** Limits for a tenant. */
export interface TenantQuota extends Quota {
  /** Topics whose names begin with the tenant and a slash. */
  readonly topics?: number | undefined;
}

/** Quotas by name; {@link everyOther} is the key for all other names. */
export interface QuotaTable {
  readonly tenants: Readonly<Record<string, TenantQuota>>;
  /** By `tenant/name`, or the name of a principal without a tenant. */
  readonly principals: Readonly<Record<string, Quota>>;
}

/** The key that stands for every name without a quota of its own. */
export const everyOther = "*";

/** Kinds of rows of the store that a quota counts. */
export type CountedRows = "subscriptions" | "callbackHosts" | "sessions";

/** How many rows an owner, or all owners of a tenant together, may have. */
export interface StoredQuota {
  readonly of: "principal" | "tenant";
  readonly name: string;
  readonly what: CountedRows;
  readonly max: number;
}

/** Answer of a store that did not write a row because a quota would be exceeded. */
export interface OverQuota {
  readonly status: "over-quota";
  readonly quota: StoredQuota;
}

/** The tenant of an owner; undefined for an owner without a tenant. */
export function tenantOf(owner: string): string | undefined {
  const end = owner.indexOf("/");
  return end === -1 ? undefined : owner.slice(0, end);
}

/** Whether a quota counts the rows of an owner. */
export function countsFor({ of, name }: Pick<StoredQuota, "of" | "name">, owner: string | undefined): boolean {
  if (owner === undefined) return false;
  return of === "principal" ? owner === name : owner.startsWith(`${name}/`);
}
