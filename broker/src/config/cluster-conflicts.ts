import { quote } from "@stele/wire";
import { loopbackOf } from "../lib/host.ts";
import { holdsPassword } from "./database-url.ts";
import { groupsOf, isClustered } from "./derived.ts";
import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

const databaseUrl = environmentName("databaseUrl");
const passwordFile = environmentName("databasePasswordFile");
const advertisedAddress = environmentName("advertisedAddress");

/** Problems of cluster settings whose values are valid individually. */
export function clusterConflicts(config: Config): readonly string[] {
  if (!isClustered(config))
    return config.databasePasswordFile === "" ? [] : [`${passwordFile} has no effect without ${databaseUrl}`];
  return [
    ...passwordConflicts(config),
    ...sharingConflicts(config),
    ...addressConflicts(config).map(
      (reason) =>
        `${advertisedAddress} must be set to host:port, because ${reason} and clients need an address at which they reach this node`,
    ),
  ];
}

function passwordConflicts(config: Config): readonly string[] {
  const isTwice = config.databasePasswordFile !== "" && holdsPassword(config.databaseUrl);
  return isTwice ? [`${databaseUrl} contains a password, and ${passwordFile} is set too: remove one of the two`] : [];
}

function sharingConflicts(config: Config): readonly string[] {
  const embedded = groupsOf(config).filter(({ endpoints }) => endpoints === "embedded");
  const reason = "other nodes cannot reach the embedded chain of this node";
  const where = config.groups === undefined ? ": name the endpoints of a chain in STELE_GROUPS" : "";
  return [
    ...(config.coordination === "none"
      ? [`${environmentName("coordination")} is none, but ${databaseUrl} is set: remove one of the two`]
      : []),
    ...embedded.map(({ id }) => `group ${quote(id)} cannot be served with ${databaseUrl}, because ${reason}${where}`),
  ];
}

function addressConflicts({ advertisedAddress: given, host, port }: Config): readonly string[] {
  if (given !== undefined) return [];
  if (port === 0) return [`${environmentName("port")} is 0`];
  return loopbackOf(host) === undefined ? [] : [`${environmentName("host")} is ${host}`];
}
