import { quote } from "@stele/wire";
import { holdsPassword } from "./database-url.ts";
import { groupsOf, isClustered } from "./derived.ts";
import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

const databaseUrl = environmentName("databaseUrl");
const passwordFile = environmentName("databasePasswordFile");
const advertisedAddress = environmentName("advertisedAddress");

/** Addresses that mean every network of a machine, and that no other machine can reach it by. */
const wildcardHosts: ReadonlySet<string> = new Set(["0.0.0.0", "::", "0:0:0:0:0:0:0:0"]);

/** What is wrong with values for several nodes that are each good by themselves. */
export function clusterConflicts(config: Config): readonly string[] {
  if (!isClustered(config))
    return config.databasePasswordFile === "" ? [] : [`${passwordFile} means nothing without ${databaseUrl}`];
  return [
    ...passwordConflicts(config),
    ...sharingConflicts(config),
    ...addressConflicts(config).map(
      (reason) =>
        `${advertisedAddress} must be given, host:port: ${reason}, and other nodes must know this one by name`,
    ),
  ];
}

function passwordConflicts(config: Config): readonly string[] {
  const isTwice = config.databasePasswordFile !== "" && holdsPassword(config.databaseUrl);
  return isTwice
    ? [`a password stands in ${databaseUrl} and in the file of ${passwordFile}: leave one of the two out`]
    : [];
}

function sharingConflicts(config: Config): readonly string[] {
  const embedded = groupsOf(config).filter(({ endpoints }) => endpoints === "embedded");
  const reason = "other nodes cannot reach the embedded chain of this one";
  const where = config.groups === undefined ? ": name the endpoints of a chain in STELE_GROUPS" : "";
  return [
    ...(config.coordination === "none"
      ? [`${environmentName("coordination")} is none, and ${databaseUrl} is given: leave one of the two out`]
      : []),
    ...embedded.map(({ id }) => `group ${quote(id)} cannot be served with ${databaseUrl}: ${reason}${where}`),
  ];
}

function addressConflicts({ advertisedAddress: given, host, port }: Config): readonly string[] {
  if (given !== undefined) return [];
  if (port === 0) return [`${environmentName("port")} is 0`];
  return wildcardHosts.has(host) ? [`${environmentName("host")} is ${host}`] : [];
}
