import { findReceiverRule } from "../domain/receiver-pattern.ts";
import { databaseName, databaseUrlRule, isDatabaseUrl } from "./database-url.ts";
import { groupsSetting } from "./groups.ts";
import { callbackNetworkRule, isAddress, isCallbackNetwork, isNetwork } from "./network.ts";
import { accessSettings } from "./access-settings.ts";
import { chainSettings } from "./chain-settings.ts";
import { mqttSettings } from "./mqtt-settings.ts";
import { storageSettings } from "./storage-settings.ts";
import { stompSettings } from "./stomp-settings.ts";
import { tailSettings } from "./tail-settings.ts";
import { isHostPort, isListenHost, isServerAddress, listenHostRule } from "./server-address.ts";
import { certificateFile, clientCaFile, keyFile } from "./tls-settings.ts";
import { isNodeUrl, isOrigin } from "./web-address.ts";
import { choice, integer, list, optional, type SettingsOf, type SettingsTable, text } from "./setting.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const mebibyte = 2 ** 20;

/** Every setting of the broker. The flags, the environment variables, the checks, `--help` and docs/configuration.md all derive from here. */
export const settings = {
  host: text({
    section: "Listening",
    description:
      "Address to listen on. With a loopback address, only this machine can connect, and callbacks may reach this machine; `0.0.0.0` or `::` serves everyone.",
    default: "127.0.0.1",
    rule: listenHostRule,
    check: isListenHost,
  }),
  port: integer({
    section: "Listening",
    description: "Port to listen on; 0 picks a free one.",
    default: 8080,
    min: 0,
    max: 65_535,
  }),
  basePath: text({
    section: "Listening",
    description: "Path prefix of every request; empty for none.",
    default: "",
    rule: "empty or a path such as /events, without a slash at its end",
    // Clients resolve dot segments before they send a request, so they could not reach the broker.
    check: (value) => /^(\/(?!\.{1,2}(\/|$))[0-9A-Za-z._~-]+)*$/.test(value),
  }),
  advertisedAddress: text<string | undefined>({
    section: "Listening",
    description:
      "Address of this node, host:port, as the subscription listing shows it. In a cluster each node has its own, and clients must be able to connect to it.",
    default: undefined,
    defaultText: "host:port as listened on",
    rule: "of the form host:port, with a port from 1 to 65535",
    check: isHostPort,
  }),
  httpTlsCertificateFile: certificateFile(
    "Listening",
    "HTTP",
    " With it, `port` and `adminPort` speak only HTTPS, and WebSockets go over TLS.",
  ),
  httpTlsKeyFile: keyFile("Listening"),
  httpTlsClientCaFile: clientCaFile("Listening", "HTTP"),
  allowedHosts: list({
    section: "Listening",
    description:
      "Host names under which clients reach this broker, besides IP addresses, `localhost` and the advertised address: `events.example.org`, `*.example.org` for all subdomains, `*` for any; ports do not matter. Requests for other names get 403, because a web page can point its own name at this machine (DNS rebinding); see [rest.md](rest.md#web-pages).",
    default: [],
    rule: "a list of host names without a port, such as events.example.org, *.example.org or *",
    checkEntry: (value) => /^(\*|(\*\.)?[0-9A-Za-z_]([0-9A-Za-z._-]{0,251}[0-9A-Za-z_])?)$/.test(value),
  }),
  trustedProxies: list({
    section: "Listening",
    description:
      "Addresses and networks of the proxies in front of the HTTP port, such as `10.0.0.7,10.1.0.0/16`. If one of these proxies sends a request, the last address in `X-Forwarded-For` that is not one of these proxies counts as the client's: in the audit log, and to slow down a client with wrong credentials. The broker ignores `X-Forwarded-For` from any other address.",
    default: [],
    rule: "a list of IP addresses and networks such as 10.0.0.7 or 10.1.0.0/16",
    checkEntry: (value) => isAddress(value) || isNetwork(value),
  }),
  allowedOrigins: list({
    section: "Listening",
    description:
      "Origins whose web pages may call, such as `https://console.example.org`, or `*` for every page; browsers get CORS headers for them. Pages of other origins get 403, and so does every page that calls `/admin`, `/metrics` or the operators' listener.",
    default: [],
    rule: "a list of origins as browsers write them, such as https://console.example.org, or *",
    checkEntry: isOrigin,
  }),
  console: choice(["on", "off"], {
    section: "Listening",
    description:
      "Whether the broker serves its [console](console.md) at `/console`, and this documentation at `/docs` if it was built.",
    default: "on",
  }),
  consoleChainNodes: list({
    section: "Listening",
    description:
      "JSON-RPC addresses of nodes of the chain that the [console](console.md) may ask for the hash of a block, to verify a proof. Everybody who opens the console learns these addresses, so none may contain a key. The nodes must allow the console's origin by CORS.",
    default: [],
    rule: "a list of http or https URLs without user names, such as https://node.partner.example",
    checkEntry: isNodeUrl,
  }),
  requestBodyBytesMax: integer({
    section: "Listening",
    description: "Longest request body; the broker refuses longer ones.",
    default: mebibyte,
    unit: "bytes",
    min: 1024,
    max: 64 * mebibyte,
  }),
  memoryInFlightBytesMax: integer({
    section: "Listening",
    description:
      "Total memory for long request bodies that are being read and long answers that clients have not read yet. Above it, the broker closes the slowest connections. The process needs about three times as much.",
    default: 64 * mebibyte,
    unit: "bytes",
    min: mebibyte,
    max: 64 * 1024 * mebibyte,
  }),
  shutdownDelayMs: integer({
    section: "Listening",
    description:
      "How long a stopping broker keeps serving while `/health/ready` already returns 503, so that load balancers stop sending before the port closes.",
    default: 0,
    unit: "milliseconds",
    min: 0,
    max: 10 * minuteMs,
  }),
  shutdownDeadlineMs: integer({
    section: "Listening",
    description: "How long a stop may take after `shutdownDelayMs`, unless a part hangs; see [stop](deploy.md#stop).",
    default: 10 * secondMs,
    unit: "milliseconds",
    min: 0,
    max: 10 * minuteMs,
  }),
  ...accessSettings,
  ...storageSettings,
  databaseUrl: text({
    section: "Cluster",
    description:
      "PostgreSQL database that several nodes share as their store and to divide the work; see [cluster.md](cluster.md). Empty for one node with SQLite in the data folder. The broker never shows its user, password or parameters.",
    default: "",
    defaultText: "empty: SQLite in the data folder",
    rule: databaseUrlRule,
    check: isDatabaseUrl,
    show: databaseName,
  }),
  databasePasswordFile: text({
    section: "Cluster",
    description: "File with the database's password, if `databaseUrl` does not contain it.",
    default: "",
    rule: "empty or a path",
    check: (value) => !value.includes("\0"),
  }),
  databaseConnectionsMax: integer({
    section: "Cluster",
    description: "Connections of this node for its store; the node uses a few more for coordination.",
    default: 10,
    unit: "connections",
    min: 2,
    max: 1000,
  }),
  takeOverAfterMs: integer({
    section: "Cluster",
    description:
      "How long this node may be silent before the others take over its work. It renews its membership three times in that time, and stops its own work if no renewal succeeds for five sixths of that time.",
    default: 6 * secondMs,
    unit: "milliseconds",
    min: 2 * secondMs,
    max: 10 * minuteMs,
  }),
  defaultGroup: text({
    section: "Interface",
    description:
      "Group of a call without groupId. Without `groups`, it is also the id of the only group; see [groups.md](groups.md) before you change it.",
    default: "1",
    rule: "1 to 64 printable ASCII characters without a space",
    check: (value) => /^[\x21-\x7e]{1,64}$/.test(value),
  }),
  groups: groupsSetting,
  extensionPrefix: text({
    section: "Interface",
    description:
      "Prefix of the names of extensions. If you change it, earlier events keep the old prefix: their marks, such as an expiry, lose their effect, and a rebuild of the index skips each batch with an extension whose prefix is neither this one nor `svc-`.",
    default: "svc-",
    rule: "1 to 32 letters, digits, dots, hyphens or underscores",
    check: (value) => /^[0-9A-Za-z._-]{1,32}$/.test(value),
  }),
  contentBytesMax: integer({
    section: "Interface",
    description:
      "Longest content of an event. If you lower it, a rebuild of the index skips each batch with an event that is longer than both the new limit and 256 KiB; see [groups.md](groups.md#foreign-writers).",
    default: 65_536,
    unit: "bytes",
    min: 1,
    max: 8 * mebibyte,
  }),
  extensionsBytesMax: integer({
    section: "Interface",
    description:
      "Longest extensions of an event: the UTF-8 bytes of all keys and values. If you lower it, a rebuild of the index skips each batch with an event whose extensions are longer than both the new limit and 16 KiB; see [groups.md](groups.md#foreign-writers).",
    default: 4096,
    unit: "bytes",
    min: 0,
    max: mebibyte,
  }),
  publishesWaitingMax: integer({
    section: "Publishing",
    description: "Publishes of a group that may wait for a transaction; further ones get error 200300.",
    default: 10_000,
    unit: "publishes",
    min: 1,
    max: 1_000_000,
  }),
  publishKeyKeptMs: integer({
    section: "Publishing",
    description:
      "How long the broker remembers the key of a publish; a repeat with the same key gets the same event as its answer; see [rest.md](rest.md#publish-once).",
    default: dayMs,
    unit: "milliseconds",
    min: 10 * minuteMs,
    max: 30 * dayMs,
  }),
  publishKeysMax: integer({
    section: "Publishing",
    description:
      "Keys of publishes that a group remembers, at most half of them of one caller; further publishes with a new key get error 200301. All callers of a tenant count as one; so do all callers without `access`, and all stored MQTT sessions. Each key takes up to 1.5 KiB of disk.",
    default: 1_000_000,
    unit: "keys",
    min: 1_000,
    max: 100_000_000,
  }),
  transactionEventsMax: optional(
    integer({
      section: "Publishing",
      description: "Maximum number of events in one transaction; 1 turns batching off.",
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
      description:
        "Maximum size of the encoded events in one transaction. Many nodes refuse a transaction over 128 KiB. If you lower it, a rebuild of the index may skip larger batches; see [groups.md](groups.md#foreign-writers).",
      default: 0,
      unit: "bytes",
      min: 1024,
      max: 16 * mebibyte,
    }),
    "1000000 on the embedded chain, else 120000",
  ),
  transactionsInFlightMax: integer({
    section: "Publishing",
    description: "Transactions of a group that may be in flight at once.",
    default: 2,
    unit: "transactions",
    min: 1,
    max: 64,
  }),
  deliveries: choice(["active", "paused"], {
    section: "Callbacks",
    description:
      "`paused` starts this node without deliveries: it calls no receiver, and everything else works; subscriptions keep their cursors and none is suspended. Use it to inspect a restored copy. If nodes share a database, each node has its own setting; see [cluster.md](cluster.md#backup).",
    default: "active",
  }),
  callbackAllow: list({
    section: "Callbacks",
    description: "Private networks that callbacks may reach, in CIDR form, for example `10.0.0.0/8,fd00::/8`.",
    default: [],
    rule: `a list of networks such as 10.0.0.0/8, ${callbackNetworkRule}`,
    checkEntry: isCallbackNetwork,
  }),
  callbackTimeoutMs: integer({
    section: "Callbacks",
    description: "Timeout of one attempt, from the connection to the end of the answer.",
    default: 15 * secondMs,
    unit: "milliseconds",
    min: 10,
    max: 5 * minuteMs,
  }),
  callbackBackoffMinMs: integer({
    section: "Callbacks",
    description: "Wait after the first failed attempt; it doubles with each further failed attempt.",
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
    description:
      "After this long without a successful attempt, the broker suspends the subscription; its cursor stays. Only the waits between attempts count: a receiver that hangs until each attempt's timeout has longer.",
    default: 3 * dayMs,
    unit: "milliseconds",
    min: secondMs,
    max: 365 * dayMs,
  }),
  notificationPlace: choice(["off", "on"], {
    section: "Callbacks",
    description:
      "Whether notifications include the place of their event on the chain, as the extensions `block`, `tx`, `publisher` and `proof` with the extension prefix; see docs/proofs.md.",
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
      "Connections to all receivers; further attempts wait for a free one. Receivers that are new, or did not answer their last attempt, use at most three quarters of them; those that did not answer, at most half.",
    default: 1000,
    unit: "connections",
    min: 1,
    max: 65_536,
  }),
  callbackBytesPerSecondMax: integer({
    section: "Callbacks",
    description:
      "Bytes sent to one receiver per second; further attempts wait. After a pause, one second's worth goes out at once.",
    default: 32 * mebibyte,
    unit: "bytes",
    min: 1024,
    max: 16_384 * mebibyte,
  }),
  callbackSubscriptionsPerReceiverMax: integer({
    section: "Callbacks",
    description: "Subscriptions of all tenants to one receiver (scheme, host and port); further ones get error 200301.",
    default: 1000,
    unit: "subscriptions",
    min: 1,
    max: 10_000_000,
  }),
  callbackConsent: choice(["auto", "off", "try", "require"], {
    section: "Callbacks",
    description:
      "Whether the broker asks a receiver for consent before it calls: `off` asks nobody; `try` calls every receiver except those that refuse; `require` calls only those that agreed; `auto` is `off` if the broker listens on loopback only, else `try`. See [callbacks.md](callbacks.md#consent).",
    default: "auto",
  }),
  callbackTrusted: list({
    section: "Callbacks",
    description:
      "Receivers to call without asking for consent: hosts, domains and origins, for example `hooks.example.org,*.example.net,https://other.example:8443`.",
    default: [],
    rule: "a list of entries such as hooks.example.org, *.example.org or https://hooks.example.org",
    checkEntry: (value) => findReceiverRule(value) !== undefined,
  }),
  callbackDnsServers: list({
    section: "Callbacks",
    description:
      "Name servers for the hosts of receivers, with or without a port, for example `10.0.0.2,[fd00::2]:5353`. Empty for those of the machine.",
    default: [],
    rule: "a list of addresses such as 10.0.0.2 or 10.0.0.2:5353",
    checkEntry: isServerAddress,
  }),
  ...chainSettings,
  ...mqttSettings,
  ...stompSettings,
  ...tailSettings,
  logLevel: choice(["debug", "info", "warn", "error", "silent"], {
    section: "Log",
    description: "Lowest level to log.",
    default: "info",
  }),
  logFormat: choice(["auto", "json", "text"], {
    section: "Log",
    description: "One JSON object per line, or text for people; `auto` is text on a terminal and JSON elsewhere.",
    default: "auto",
  }),
} as const satisfies SettingsTable;

/** The broker's configuration; frozen. It contains no secret, except in addresses of endpoints and of the database. */
export type Config = SettingsOf<typeof settings>;
