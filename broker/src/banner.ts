import { cryptoInUse } from "@stele/eth/node";
import { describeDatabase } from "./compose/database.ts";
import type { ListenerAddress } from "./compose/listen.ts";
import { exposedHosts } from "./config/access-conflicts.ts";
import { adminPortOf, servesOperators } from "./config/admin-port.ts";
import { connectionProtocols, portOf, protocolNames } from "./config/connection-ports.ts";
import { addressOfNode, isClustered, servesChain } from "./config/derived.ts";
import { flagName } from "./config/setting.ts";
import type { Config } from "./config/settings.ts";
import type { GroupHealth } from "./engine/broker.ts";
import { operatorsListener } from "./gateway/admin/operators-path.ts";
import { toPrintable } from "./lib/printable.ts";
import { version } from "./version.ts";

/** A started broker: its addresses, its data folder and the state of its groups. */
export interface Started {
  readonly url: string;
  readonly listeners: readonly ListenerAddress[];
  readonly dataDir: string;
  readonly groups: readonly GroupHealth[];
}

/** The facts about a group's chain that operators need elsewhere; the log and /health/ready have all facts. */
const facts = ["chainId", "registry", "signer"];

const signing = {
  native: "native addon (secp256k1)",
  noble: "noble (JavaScript), since the native addon secp256k1 did not load: a tenth of its speed",
} as const;

/** The text that the broker prints once it listens. Names its addresses, and the groups that are not up yet, with the reasons. */
export function toBanner({ url, listeners, dataDir, groups }: Started, config: Config): string {
  const operators = listeners.find(({ name }) => name === operatorsListener)?.address;
  const admin = operators ?? (servesOperators(config) ? url : undefined);
  const rows = [
    ...listeners.map(({ name, address }) => [name, address] as const),
    ...missingRows(listeners, config),
    ["REST", `${url}/rest/<operation>`],
    ["JSON-RPC", `${url}/jsonrpc`],
    ...(admin !== undefined && servesChain(config) ? [["Chain", `${admin}/chain`]] : []),
    ...(admin === undefined ? [] : [["Admin", `${admin}/admin/listSubscription`]]),
    ...(config.console === "on" ? [["Console", `${admin ?? url}/console`]] : []),
    ["Reference", `${url}/openapi.json`],
    ["Health", `${url}/health/ready`],
    ...(admin === undefined ? [] : [["Metrics", `${admin}/metrics`]]),
    ...accessRows(config),
    ["Data", dataDir],
    ...(config.deliveries === "paused"
      ? [["Callbacks", "paused: none is attempted (--deliveries, or a restored backup: stele activate)"]]
      : []),
    ["Signing", signing[cryptoInUse.signing]],
    ...(isClustered(config)
      ? [
          ["Database", describeDatabase(config)],
          ["Node", `${addressOfNode(config)}, one of the nodes that share the database`],
        ]
      : []),
    ...groups.map((group) => ["Group", `${group.groupId}: ${describeGroup(group)}`] as const),
  ] as const;
  // A chain's endpoint wrote a part of the reason why its group is not up.
  const lines = rows.map(([name, value]) => `  ${name.padEnd(10)}${toPrintable(value)}`);
  return `Stele ${version} ${describeState(groups)}\n${lines.join("\n")}\n`;
}

function accessRows(config: Config): readonly (readonly [string, string])[] {
  if (config.access !== undefined)
    return [["Access", config.access.tokens.length === 0 ? "by key: stele key create" : "by key or token"]];
  const hosts = exposedHosts(config).map((name) => config[name]);
  return hosts.length === 0
    ? []
    : [["Access", `OPEN: whoever reaches ${hosts.join(" or ")} may do everything (--allow-anonymous)`]];
}

/** Rows for the default listeners that the broker started without, because it could not listen on their ports. */
function missingRows(listeners: readonly ListenerAddress[], config: Config): readonly (readonly [string, string])[] {
  const asked = [
    { name: operatorsListener, setting: "adminPort" as const, port: adminPortOf(config)?.port },
    ...connectionProtocols.map((protocol) => ({
      name: protocolNames[protocol],
      setting: `${protocol}Port` as const,
      port: portOf(config, protocol)?.port,
    })),
  ];
  return asked.flatMap(({ name, setting, port }) => {
    if (port === undefined || listeners.some((listener) => listener.name === name)) return [];
    const remedy = `choose one by ${flagName(setting)}, or off`;
    return [[name, `not served: port ${port} cannot be opened; ${remedy}`] as const];
  });
}

/** The state of the broker in words. "Ready" means the same as at /health/ready: at least one group can serve. */
function describeState(groups: readonly GroupHealth[]): string {
  const down = groups.filter(({ ready }) => !ready).map(({ groupId }) => groupId);
  if (down.length === 0) return "is ready.";
  const names = `${down.length === 1 ? "group" : "groups"} ${down.join(", ")}`;
  return down.length < groups.length
    ? `is ready, but not yet for ${names}: see below.`
    : `has started, and is not ready yet for ${names}: see below.`;
}

function describeGroup({ reason, chain = {} }: GroupHealth): string {
  if (reason !== undefined) return `not up yet: ${reason}`;
  return facts.flatMap((name) => (chain[name] === undefined ? [] : [`${name} ${chain[name]}`])).join(", ");
}
