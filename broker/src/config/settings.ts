import ipaddr from "ipaddr.js";
import { findReceiverRule } from "../domain/receiver-pattern.ts";
import { databaseName, databaseUrlRule, isDatabaseUrl } from "./database-url.ts";
import { groupsSetting } from "./groups.ts";
import { isServerAddress } from "./server-address.ts";
import { choice, integer, list, optional, type SettingsOf, type SettingsTable, text } from "./setting.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const mebibyte = 2 ** 20;

/** Every setting of the broker. The flags, the environment names, the checks, `--help` and docs/configuration.md all come from here. */
export const settings = {
  host: text({
    section: "Listening",
    description:
      "Address to listen on. A loopback address serves this machine alone, and lets callbacks reach it; `0.0.0.0` or `::` serves everyone.",
    default: "127.0.0.1",
    rule: "an address or a host name",
    check: (value) => /^[0-9A-Za-z.:_-]{1,253}$/.test(value),
  }),
  port: integer({
    section: "Listening",
    description: "Port to listen on; 0 takes any free one.",
    default: 8080,
    min: 0,
    max: 65_535,
  }),
  basePath: text({
    section: "Listening",
    description: "Context segment before every path; empty for none.",
    default: "",
    rule: "empty or a path such as /events, without a slash at its end",
    check: (value) => /^(\/[0-9A-Za-z._~-]+)*$/.test(value),
  }),
  advertisedAddress: text<string | undefined>({
    section: "Listening",
    description:
      "Name of this node in the subscription listing, host:port; where several nodes share a database, each has its own, under which clients reach it.",
    default: undefined,
    defaultText: "host:port as listened on",
    rule: "of the form host:port",
    check: (value) => /^(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]{1,253}):\d{1,5}$/.test(value),
  }),
  allowedHosts: list({
    section: "Listening",
    description:
      "Host names under which clients reach this broker, beside IP addresses, `localhost` and the advertised address: `events.example.org`, `*.example.org` for every name that ends so, `*` for any; ports do not matter. Other names are answered 403, since a web page can point a name of its own at this machine; see [rest.md](rest.md#web-pages).",
    default: [],
    rule: "a list of host names without a port, such as events.example.org, *.example.org or *",
    checkEntry: (value) => /^(\*|(\*\.)?[0-9A-Za-z_]([0-9A-Za-z._-]{0,251}[0-9A-Za-z_])?)$/.test(value),
  }),
  allowedOrigins: list({
    section: "Listening",
    description:
      "Origins whose web pages may call, such as `https://console.example.org`, or `*` for every page; browsers get CORS answers for them. Pages of other origins are answered 403.",
    default: [],
    rule: "a list of origins as browsers write them, such as https://console.example.org, or *",
    checkEntry: isOrigin,
  }),
  requestBodyBytesMax: integer({
    section: "Listening",
    description: "Longest request body; a longer one is refused.",
    default: mebibyte,
    unit: "bytes",
    min: 1024,
    max: 64 * mebibyte,
  }),
  memoryInFlightBytesMax: integer({
    section: "Listening",
    description:
      "Memory for long request bodies that are being read and long answers that clients have not taken yet, in all. Past it, the connections whose clients are slowest are ended. The process takes about three times as much.",
    default: 64 * mebibyte,
    unit: "bytes",
    min: mebibyte,
    max: 64 * 1024 * mebibyte,
  }),
  shutdownDelayMs: integer({
    section: "Listening",
    description:
      "How long a stopping broker goes on serving while `/health/ready` is 503 already, so that a load balancer sends nothing more before the port is closed.",
    default: 0,
    unit: "milliseconds",
    min: 0,
    max: 10 * minuteMs,
  }),
  shutdownDeadlineMs: integer({
    section: "Listening",
    description: "How long a stopping broker waits for what is under way, after that delay.",
    default: 10 * secondMs,
    unit: "milliseconds",
    min: 0,
    max: 10 * minuteMs,
  }),
  dataDir: text({
    section: "Storage",
    description:
      "Folder of the chain, the store and the signer's key; made when missing. Each node has its own, also where nodes share a database.",
    default: "./data",
    rule: "a path",
    check: isPath,
  }),
  coordination: choice(["store", "none"], {
    section: "Storage",
    description:
      "Where subscriptions live: `store` keeps them in the data folder, or in the database; `none` keeps them in memory, and JSON-RPC unSubscribe is refused; see [cluster.md](cluster.md#coordination-none).",
    default: "store",
  }),
  scrubPeriodMs: integer({
    section: "Storage",
    description:
      "Wait between two rounds in which the broker slowly reads all that its index and the embedded chain hold, checks it, and mends what is damaged, each from the other; 0 for none. The first round begins within an hour of a start. Where nodes share a database, the node that writes the index does it.",
    default: 7 * dayMs,
    unit: "milliseconds",
    min: 0,
    max: 365 * dayMs,
  }),
  secretKeyFile: text({
    section: "Storage",
    description:
      "File with the keys that seal the secrets of subscriptions in the store, newest first; see [callbacks.md](callbacks.md#secrets-at-rest). Nodes that share a database must share it too: without it, they refuse a secret.",
    default: "",
    defaultText: "empty: `secrets.key` in the data folder, made with the first secret",
    rule: "empty or a path",
    check: (value) => !value.includes("\0"),
  }),
  databaseUrl: text({
    section: "Cluster",
    description:
      "PostgreSQL database that several nodes share as their store, by which they divide the work; see [cluster.md](cluster.md). Empty for one node with SQLite in the data folder. It is shown nowhere with user, password or parameters.",
    default: "",
    defaultText: "empty: SQLite in the data folder",
    rule: databaseUrlRule,
    check: isDatabaseUrl,
    show: databaseName,
  }),
  databasePasswordFile: text({
    section: "Cluster",
    description: "File that holds the database's password, where it does not stand in `databaseUrl`.",
    default: "",
    rule: "empty or a path",
    check: (value) => !value.includes("\0"),
  }),
  databaseConnectionsMax: integer({
    section: "Cluster",
    description: "Connections of this node for its store; a few more are for what the nodes agree on.",
    default: 10,
    unit: "connections",
    min: 2,
    max: 1000,
  }),
  takeOverAfterMs: integer({
    section: "Cluster",
    description:
      "How long this node may be silent before the others take its work over. It tells them three times as often that it is there, and stops its own work when nobody has heard it for five sixths of this.",
    default: 6 * secondMs,
    unit: "milliseconds",
    min: 2 * secondMs,
    max: 10 * minuteMs,
  }),
  defaultGroup: text({
    section: "Interface",
    description: "Group that a call without groupId means.",
    default: "1",
    rule: "1 to 64 printable ASCII characters without a space",
    check: (value) => /^[\x21-\x7e]{1,64}$/.test(value),
  }),
  groups: groupsSetting,
  extensionPrefix: text({
    section: "Interface",
    description: "How the names of user-defined extensions begin.",
    default: "svc-",
    rule: "1 to 32 letters, digits, dots, hyphens or underscores",
    check: (value) => /^[0-9A-Za-z._-]{1,32}$/.test(value),
  }),
  contentBytesMax: integer({
    section: "Interface",
    description: "Longest content of an event.",
    default: 65_536,
    unit: "bytes",
    min: 1,
    max: 8 * mebibyte,
  }),
  extensionsBytesMax: integer({
    section: "Interface",
    description: "Longest extensions of an event: the UTF-8 bytes of all keys and values.",
    default: 4096,
    unit: "bytes",
    min: 0,
    max: mebibyte,
  }),
  publishesWaitingMax: integer({
    section: "Publishing",
    description: "Publishes of a group that may wait for a transaction; further ones are answered with error 200300.",
    default: 10_000,
    unit: "publishes",
    min: 1,
    max: 1_000_000,
  }),
  transactionEventsMax: optional(
    integer({
      section: "Publishing",
      description: "Events in one transaction; 1 turns batching off.",
      default: 0,
      unit: "events",
      min: 1,
      max: 65_536,
    }),
    "4096 on the embedded chain, else 1000",
  ),
  transactionBytesMax: optional(
    integer({
      section: "Publishing",
      description: "Encoded events in one transaction. Many nodes refuse a transaction over 128 KiB.",
      default: 0,
      unit: "bytes",
      min: 1024,
      max: 16 * mebibyte,
    }),
    "1000000 on the embedded chain, else 120000",
  ),
  transactionsInFlightMax: integer({
    section: "Publishing",
    description: "Transactions of a group that may be under way at once.",
    default: 2,
    unit: "transactions",
    min: 1,
    max: 64,
  }),
  deliveries: choice(["active", "paused"], {
    section: "Callbacks",
    description:
      "`paused` starts this node silent: it attempts no callback, and everything else works; subscriptions keep their cursors and none is suspended. For a copy that is restored to look at. Where nodes share a database each node has its own; see [cluster.md](cluster.md#backup).",
    default: "active",
  }),
  callbackAllow: list({
    section: "Callbacks",
    description:
      "Networks outside the public internet that callbacks may reach, in CIDR form, for example `10.0.0.0/8,fd00::/8`.",
    default: [],
    rule: "a list of networks such as 10.0.0.0/8",
    checkEntry: (value) => ipaddr.isValidCIDR(value),
  }),
  callbackTimeoutMs: integer({
    section: "Callbacks",
    description: "Time for one attempt, from the connection to the end of the answer.",
    default: 15 * secondMs,
    unit: "milliseconds",
    min: 10,
    max: 5 * minuteMs,
  }),
  callbackBackoffMinMs: integer({
    section: "Callbacks",
    description: "Wait after the first failed attempt; it doubles with each further one.",
    default: secondMs,
    unit: "milliseconds",
    min: 10,
    max: hourMs,
  }),
  callbackBackoffMaxMs: integer({
    section: "Callbacks",
    description: "Longest wait between two attempts.",
    default: 5 * minuteMs,
    unit: "milliseconds",
    min: 10,
    max: dayMs,
  }),
  callbackGiveUpAfterMs: integer({
    section: "Callbacks",
    description: "Failure without a pause for this long suspends the subscription; its cursor stays.",
    default: 3 * dayMs,
    unit: "milliseconds",
    min: secondMs,
    max: 365 * dayMs,
  }),
  notificationPlace: choice(["off", "on"], {
    section: "Callbacks",
    description:
      "Whether notifications carry the place of their event on the chain, as extensions named with the prefix and `block`, `tx`, `publisher` and `proof`; see docs/proofs.md.",
    default: "off",
  }),
  callbackConnectionsMax: integer({
    section: "Callbacks",
    description: "Connections to one receiver (scheme, host and port); further attempts wait for a free one.",
    default: 64,
    unit: "connections",
    min: 1,
    max: 4096,
  }),
  callbackConnectionsTotalMax: integer({
    section: "Callbacks",
    description:
      "Connections to all receivers; further attempts wait for a free one. Receivers that are new, or did not answer their last attempt, hold three quarters of them at most; those that did not answer, half.",
    default: 1000,
    unit: "connections",
    min: 1,
    max: 65_536,
  }),
  callbackBytesPerSecondMax: integer({
    section: "Callbacks",
    description:
      "Bytes sent to one receiver in a second; further attempts wait. After a pause a second's worth goes at once.",
    default: 32 * mebibyte,
    unit: "bytes",
    min: 1024,
    max: 16_384 * mebibyte,
  }),
  callbackSubscriptionsPerReceiverMax: integer({
    section: "Callbacks",
    description: "Subscriptions to one receiver (scheme, host and port); further ones are answered with error 200301.",
    default: 1000,
    unit: "subscriptions",
    min: 1,
    max: 10_000_000,
  }),
  callbackConsent: choice(["auto", "off", "try", "require"], {
    section: "Callbacks",
    description:
      "Whether a receiver is asked before it is called: `off` asks nobody; `try` calls every receiver but those that refuse; `require` calls none that did not agree; `auto` is `off` where the broker listens on loopback only, and `try` elsewhere. See [callbacks.md](callbacks.md#consent).",
    default: "auto",
  }),
  callbackTrusted: list({
    section: "Callbacks",
    description:
      "Receivers that are called without being asked: hosts, domains and origins, for example `hooks.example.org,*.example.net,https://other.example:8443`.",
    default: [],
    rule: "a list of entries such as hooks.example.org, *.example.org or https://hooks.example.org",
    checkEntry: (value) => findReceiverRule(value) !== undefined,
  }),
  callbackDnsServers: list({
    section: "Callbacks",
    description:
      "Name servers that know the hosts of receivers, with a port or without, for example `10.0.0.2,[fd00::2]:5353`. Empty for those of the machine.",
    default: [],
    rule: "a list of addresses such as 10.0.0.2 or 10.0.0.2:5353",
    checkEntry: isServerAddress,
  }),
  chainId: integer({
    section: "Embedded chain",
    description:
      "Chain id of the embedded chain. It is part of the chain: one data folder keeps the one it began with.",
    default: 5_461_068,
    min: 1,
    max: 4_503_599_627_370_476,
  }),
  chainCheckInterval: integer({
    section: "Embedded chain",
    description:
      "The embedded chain runs most transactions by an interpreter of its own. One in so many is run by EthereumJS too, and the results " +
      "compared: a difference is logged as an error, EthereumJS' result stands, and it runs all further transactions. 1 compares each.",
    default: 1000,
    unit: "transactions",
    min: 1,
    max: 1_000_000,
  }),
  chainEndpoint: choice(["on", "off"], {
    section: "Embedded chain",
    description:
      "Whether the chain can be read over HTTP, at `/chain`; see docs/chain.md. Nothing can be written there.",
    default: "on",
  }),
  logLevel: choice(["debug", "info", "warn", "error", "silent"], {
    section: "Log",
    description: "Least severe lines that are logged.",
    default: "info",
  }),
  logFormat: choice(["auto", "json", "text"], {
    section: "Log",
    description: "One JSON object a line, or text for people; `auto` is text on a terminal and JSON elsewhere.",
    default: "auto",
  }),
} as const satisfies SettingsTable;

/** How the broker is set up; frozen. No secret is in it but in addresses: of endpoints, and of the database. */
export type Config = SettingsOf<typeof settings>;

/** Any other spelling would never equal what a browser sends. */
function isOrigin(value: string): boolean {
  if (value.includes("*")) return value === "*";
  if (/^[a-z-]+-extension:\/\/[0-9A-Za-z-]+$/.test(value)) return true;
  return URL.canParse(value) && new URL(value).origin === value;
}

function isPath(value: string): boolean {
  return value !== "" && !value.includes("\0");
}
