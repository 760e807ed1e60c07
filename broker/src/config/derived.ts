import { isIP } from "node:net";
import { type GroupId, parseGroupId } from "../domain/group-id.ts";
import { toHostPort } from "../lib/host.ts";
import { checkValues, toSettings } from "./check-values.ts";
import { type GroupEntry, groupFields } from "./group-fields.ts";
import type { Config } from "./settings.ts";

/** Whether only this machine can reach the broker. The operators' listener does not count. */
export function listensOnLoopbackOnly(config: Pick<Config, "host">): boolean {
  return isLoopback(config.host);
}

/** Whether an address or host name is one that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Whether the broker asks receivers for consent. On a loopback address, `auto` means `off`: everyone who can reach the broker can also call the
 * receivers directly. A node with paused deliveries asks nobody.
 */
export function consentModeOf(
  config: Pick<Config, "host" | "callbackConsent" | "deliveries">,
): "off" | "try" | "require" {
  if (config.deliveries === "paused") return "off";
  if (config.callbackConsent !== "auto") return config.callbackConsent;
  return listensOnLoopbackOnly(config) ? "off" : "try";
}

/** The name that this node gives when it asks a receiver for consent: the host of its advertised address, else the machine's. */
export function callbackOrigin({ advertisedAddress }: Pick<Config, "advertisedAddress">, machineName: string): string {
  return advertisedAddress?.replace(/:\d+$/, "") ?? machineName;
}

/** Whether this node shares a database with others. */
export function isClustered({ databaseUrl }: Pick<Config, "databaseUrl">): boolean {
  return databaseUrl !== "";
}

/** Address under which other nodes and clients reach this node of a cluster, host:port. */
export function addressOfNode({ advertisedAddress, host, port }: Config): string {
  return advertisedAddress ?? toHostPort(host, port);
}

/** Host names under which clients reach this node. IP addresses are always accepted, so they are not in the list. */
export function hostNamesOf(config: Pick<Config, "allowedHosts" | "advertisedAddress" | "host">): readonly string[] {
  const { allowedHosts, advertisedAddress = "", host } = config;
  const own = [host, advertisedAddress.replace(/:\d+$/, "")];
  return [...allowedHosts, ...own.filter((name) => name !== "" && isIP(name.replaceAll(/[[\]]/g, "")) === 0)];
}

/** One group with all its values resolved. */
export interface GroupConfig extends GroupEntry {
  readonly id: GroupId;
  readonly transactionEventsMax: number;
  readonly transactionBytesMax: number;
  readonly transactionsInFlightMax: number;
  readonly storeRetentionMs: number;
}

/** Default number of transactions in flight on an external chain, which has its own block time. */
const externalInFlightMax = 16;

interface TransactionSize {
  readonly events: number;
  readonly bytes: number;
}

/** Default maximum size of one transaction on the embedded chain. Every broker can read a batch of 1 MiB. */
const embeddedTransaction: TransactionSize = { events: 4096, bytes: 1_000_000 };
/** Default maximum size of one transaction on any other chain: public nodes refuse long ones. */
const externalTransaction: TransactionSize = { events: 1000, bytes: 120_000 };

/** Default maximum size of a group's transactions. */
export function transactionOf({ endpoints }: Pick<GroupEntry, "endpoints">): TransactionSize {
  return endpoints === "embedded" ? embeddedTransaction : externalTransaction;
}

/** The groups to serve; if none is configured, one on the embedded chain. */
export function groupsOf(config: Config): readonly GroupConfig[] {
  return entriesOf(config).map((entry) => ({
    ...entry,
    id: parseGroupId(entry.id),
    transactionEventsMax: entry.transactionEventsMax ?? config.transactionEventsMax ?? transactionOf(entry).events,
    transactionBytesMax: entry.transactionBytesMax ?? config.transactionBytesMax ?? transactionOf(entry).bytes,
    storeRetentionMs: entry.storeRetentionMs ?? config.storeRetentionMs,
    transactionsInFlightMax:
      entry.transactionsInFlightMax ??
      (entry.endpoints === "embedded" ? config.transactionsInFlightMax : externalInFlightMax),
  }));
}

/** The configured groups; if there are none, one on the embedded chain. */
export function entriesOf(config: Pick<Config, "groups" | "defaultGroup">): readonly GroupEntry[] {
  return config.groups ?? [embeddedEntry(config.defaultGroup)];
}

function embeddedEntry(id: string): GroupEntry {
  return { ...toSettings(groupFields, checkValues(groupFields, new Map())), id, endpoints: "embedded" };
}

/** Whether `/chain` serves the embedded chain. */
export function servesChain(config: Config): boolean {
  return config.chainEndpoint === "on" && groupsOf(config).some(({ endpoints }) => endpoints === "embedded");
}
