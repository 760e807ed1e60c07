/** What a tenant or a principal may use. What is left out is not bounded. Rates and connections count at each node. */
export interface Quota {
  /** Events, counted over any second; as many may come at once. */
  readonly publishesPerSecond?: number | undefined;
  /** Bytes of contents and extensions of these events. */
  readonly bytesPerSecond?: number | undefined;
  /** Connections of MQTT and STOMP that are open at once. */
  readonly connections?: number | undefined;
  /** Attempts of callbacks, counted over any second; as many may be made at once. */
  readonly callbacksPerSecond?: number | undefined;
  /** Hosts that callbacks go to. */
  readonly callbackHosts?: number | undefined;
  /** Callback subscriptions. */
  readonly subscriptions?: number | undefined;
  /** Sessions in the store. */
  readonly sessions?: number | undefined;
}

/** What a tenant may use. */
export interface TenantQuota extends Quota {
  /** Topics whose names begin with the tenant and a slash. */
  readonly topics?: number | undefined;
}

/** Quotas by name; `*` for each whose name is not there. */
export interface QuotaTable {
  readonly tenants: Readonly<Record<string, TenantQuota>>;
  /** By `tenant/name`, or the name of a principal without a tenant. */
  readonly principals: Readonly<Record<string, Quota>>;
}

/** Stands for every name that has no quota of its own. */
export const everyOther = "*";

/** What is counted by rows of the store. */
export type StoredThing = "subscriptions" | "callbackHosts" | "sessions";

/** How many rows an owner, or all owners of a tenant together, may have. */
export interface StoredQuota {
  readonly of: "principal" | "tenant";
  readonly name: string;
  readonly what: StoredThing;
  readonly max: number;
}

/** A row that was not written: there would be more than a quota allows. */
export interface OverQuota {
  readonly status: "over-quota";
  readonly quota: StoredQuota;
}

/** The tenant of an owner; undefined for none. */
export function tenantOf(owner: string): string | undefined {
  const end = owner.indexOf("/");
  return end === -1 ? undefined : owner.slice(0, end);
}

/** Whether a quota counts what somebody owns. */
export function countsFor({ of, name }: Pick<StoredQuota, "of" | "name">, owner: string | undefined): boolean {
  if (owner === undefined) return false;
  return of === "principal" ? owner === name : owner.startsWith(`${name}/`);
}
