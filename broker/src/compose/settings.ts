import { readFileSync } from "node:fs";
import type { BrokerSettings, CheckedSettings, Place } from "../cli/broker-settings.ts";
import { findCertificateProblems } from "./certificates.ts";
import { findDatabaseProblems } from "./database.ts";
import { findLogInProblems } from "./log-ins.ts";
import { findSecretProblems } from "./secrets.ts";
import { findSignerProblems } from "./signer.ts";
import { adminPortOf } from "../config/admin-port.ts";
import { connectionProtocols, portOf, protocolNames } from "../config/connection-ports.ts";
import { isSecured } from "../config/connection-conflicts.ts";
import { databaseName } from "../config/database-url.ts";
import { groupsOf, isClustered } from "../config/derived.ts";
import { loadConfig, type Secrets } from "../config/load-config.ts";
import { flagName } from "../config/setting.ts";
import { type Config, settings } from "../config/settings.ts";
import { loopbackOf, toHostPort } from "../lib/host.ts";
import { version } from "../version.ts";

/** The port of PostgreSQL if the address names none. */
const postgresPort = 5432;

/** Problems of the database's address, and of the keys, secrets and certificates that valid settings name: a start would refuse them. */
export async function findProblems(config: Config, secrets: Secrets): Promise<readonly string[]> {
  return [
    ...findDatabaseProblems(config),
    ...findSecretProblems(config),
    ...findLogInProblems(config),
    ...findCertificateProblems(config),
    ...(await findSignerProblems(groupsOf(config), secrets)),
  ];
}

/** The settings of a broker on this machine, for client commands. */
export const brokerSettings: BrokerSettings = {
  flags: [
    { name: "--config", choices: [] },
    ...Object.entries(settings).map(([name, { rule }]) => ({ name: flagName(name), choices: choicesOf(rule) })),
  ],
  check: async (configFile, env) => {
    const argv = configFile === undefined ? [] : ["--config", configFile];
    const loaded = loadConfig({ env, argv: ["--check-config", ...argv], readFile: readText, version });
    if (loaded.status === "refused") return loaded;
    if (loaded.status !== "checked") throw new Error("--check-config did not check the settings");
    const problems = await findProblems(loaded.config, loaded.secrets);
    if (problems.length > 0) return { status: "refused", problems };
    return { status: "valid", settings: describe(loaded.config) };
  },
};

function readText(path: string): string {
  return readFileSync(path, "utf8");
}

/** The values of a setting whose rule lists them; else none. */
function choicesOf(rule: string): readonly string[] {
  if (rule === "true or false") return ["true", "false"];
  return rule.startsWith("one of ") ? rule.slice("one of ".length).split(", ") : [];
}

function describe(config: Config): CheckedSettings {
  return {
    dataDir: config.dataDir,
    url: urlOf(config, config),
    adminUrl: adminUrlOf(config),
    database: isClustered(config)
      ? { name: String(databaseName(config.databaseUrl)), place: placeOfDatabase(config.databaseUrl) }
      : undefined,
    ports: connectionProtocols.flatMap((protocol) => {
      const port = portOf(config, protocol);
      const tlsPort = config[`${protocol}TlsPort`];
      const name = protocolNames[protocol];
      return [
        ...(port === undefined ? [] : [{ name, host: config.host, port: port.port }]),
        ...(tlsPort === "off" ? [] : [{ name: `${name} TLS`, host: config.host, port: tlsPort }]),
      ];
    }),
  };
}

/** Also undefined for the default port: if another program uses that port, the broker starts without it, and that program must not get an operator's key. */
function adminUrlOf(config: Config): string | undefined {
  const place = adminPortOf(config);
  return place?.isConfigured === true ? urlOf(config, place) : undefined;
}

/** Base URL of an HTTP listener. */
function urlOf(config: Config, place: Pick<Config, "host" | "port"> | undefined): string | undefined {
  if (place === undefined || place.port === 0) return undefined;
  const scheme = isSecured(config, "http") ? "https" : "http";
  return `${scheme}://${toHostPort(loopbackOf(place.host) ?? place.host, place.port)}${config.basePath}`;
}

function placeOfDatabase(address: string): Place | undefined {
  const { hostname, port, searchParams } = new URL(address);
  const host = searchParams.get("host") ?? decodeURIComponent(hostname);
  return host.startsWith("/") ? undefined : { name: "database", host, port: port === "" ? postgresPort : Number(port) };
}
