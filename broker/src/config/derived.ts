import { isIP } from "node:net";
import { type GroupId, parseGroupId } from "../domain/group-id.ts";
import { checkValues, toSettings } from "./check-values.ts";
import { type GroupEntry, groupFields } from "./group-fields.ts";
import type { Config } from "./settings.ts";

/** Whether only this machine can reach the broker. */
export function listensOnLoopbackOnly(config: Pick<Config, "host">): boolean {
  return config.host === "localhost" || config.host === "::1" || /^127(\.\d{1,3}){3}$/.test(config.host);
}

/** Whether receivers are asked before they are called. Who reaches this machine alone can send from it anyway; a silent copy asks nobody. */
export function consentModeOf(
  config: Pick<Config, "host" | "callbackConsent" | "deliveries">,
): "off" | "try" | "require" {
  if (config.deliveries === "paused") return "off";
  if (config.callbackConsent !== "auto") return config.callbackConsent;
  return listensOnLoopbackOnly(config) ? "off" : "try";
}

/** The name under which this node asks its receivers: the host of its advertised address, else the machine's. */
export function callbackOrigin({ advertisedAddress }: Pick<Config, "advertisedAddress">, machineName: string): string {
  return advertisedAddress?.replace(/:\d+$/, "") ?? machineName;
}

/** Whether this node shares a database with others. */
export function isClustered({ databaseUrl }: Pick<Config, "databaseUrl">): boolean {
  return databaseUrl !== "";
}

/** Under which name the other nodes and the clients know this one, host:port, where that is settled before it listens. */
export function addressOfNode({ advertisedAddress, host, port }: Config): string {
  return advertisedAddress ?? `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Host names under which clients reach this node. Addresses are left out: they need no entry. */
export function hostNamesOf(config: Pick<Config, "allowedHosts" | "advertisedAddress" | "host">): readonly string[] {
  const { allowedHosts, advertisedAddress = "", host } = config;
  const own = [host, advertisedAddress.replace(/:\d+$/, "")];
  return [...allowedHosts, ...own.filter((name) => name !== "" && isIP(name.replaceAll(/[[\]]/g, "")) === 0)];
}

/** One group with every value worked out. */
export interface GroupConfig extends GroupEntry {
  readonly id: GroupId;
  readonly transactionEventsMax: number;
  readonly transactionBytesMax: number;
  readonly transactionsInFlightMax: number;
}

/** Transactions under way at once on a chain whose blocks come at their own pace. */
const externalInFlightMax = 16;

interface TransactionSize {
  readonly events: number;
  readonly bytes: number;
}

/** What one transaction holds at most where no setting says so: nodes of others refuse long ones, and every broker reads a batch of 1 MiB. */
const embeddedTransaction: TransactionSize = { events: 4096, bytes: 1_000_000 };
const externalTransaction: TransactionSize = { events: 1000, bytes: 120_000 };

/** The default for a group's transactions. */
export function transactionOf({ endpoints }: Pick<GroupEntry, "endpoints">): TransactionSize {
  return endpoints === "embedded" ? embeddedTransaction : externalTransaction;
}

/** The groups that are served; one on the embedded chain where none is configured. */
export function groupsOf(config: Config): readonly GroupConfig[] {
  return entriesOf(config).map((entry) => ({
    ...entry,
    id: parseGroupId(entry.id),
    transactionEventsMax: entry.transactionEventsMax ?? config.transactionEventsMax ?? transactionOf(entry).events,
    transactionBytesMax: entry.transactionBytesMax ?? config.transactionBytesMax ?? transactionOf(entry).bytes,
    transactionsInFlightMax:
      entry.transactionsInFlightMax ??
      (entry.endpoints === "embedded" ? config.transactionsInFlightMax : externalInFlightMax),
  }));
}

/** The groups as they are configured; one on the embedded chain where none is. */
export function entriesOf(config: Pick<Config, "groups" | "defaultGroup">): readonly GroupEntry[] {
  return config.groups ?? [embeddedEntry(config.defaultGroup)];
}

function embeddedEntry(id: string): GroupEntry {
  return { ...toSettings(groupFields, checkValues(groupFields, new Map())), id, endpoints: "embedded" };
}

/** Whether the embedded chain can be read at `/chain`. */
export function servesChain(config: Config): boolean {
  return config.chainEndpoint === "on" && groupsOf(config).some(({ endpoints }) => endpoints === "embedded");
}
