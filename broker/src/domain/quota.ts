/** What a tenant or a principal may use of one node. What is left out is not bounded. */
export interface Quota {
  /** Events, counted over any second; as many may come at once. */
  readonly publishesPerSecond?: number | undefined;
  /** Bytes of contents and extensions of these events. */
  readonly bytesPerSecond?: number | undefined;
  /** Connections of MQTT and STOMP that are open at once. */
  readonly connections?: number | undefined;
}

/** Quotas by name; `*` for each whose name is not there. */
export interface QuotaTable {
  readonly tenants: Readonly<Record<string, Quota>>;
  /** By `tenant/name`, or the name of a principal without a tenant. */
  readonly principals: Readonly<Record<string, Quota>>;
}

/** Stands for every name that has no quota of its own. */
export const everyOther = "*";
