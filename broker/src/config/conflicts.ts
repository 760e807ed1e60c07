import { quote } from "@stele/wire";
import { accessConflicts } from "./access-conflicts.ts";
import { clusterConflicts } from "./cluster-conflicts.ts";
import { entriesOf, transactionOf } from "./derived.ts";
import type { GroupEntry } from "./group-fields.ts";
import { connectionConflicts } from "./connection-conflicts.ts";
import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

/** Base64 encodes three bytes as four characters. */
const base64Growth = 4 / 3;
/** Bytes of a request around its content: names, braces, a JSON-RPC envelope. */
const envelopeBytes = 512;

/** Problems of settings whose values are valid individually. */
export function findConflicts(config: Config): readonly string[] {
  const { contentBytesMax, extensionsBytesMax, requestBodyBytesMax } = config;
  const bodyBytesMin = Math.ceil(contentBytesMax * base64Growth) + extensionsBytesMax + envelopeBytes;
  const batchBytesMin = contentBytesMax + extensionsBytesMax + envelopeBytes;
  const conflicts: string[] = [];
  if (requestBodyBytesMax < bodyBytesMin)
    conflicts.push(tooSmall(environmentName("requestBodyBytesMax"), bodyBytesMin));
  if (smallestTransaction(config) < batchBytesMin)
    conflicts.push(tooSmall(environmentName("transactionBytesMax"), batchBytesMin));
  if (config.callbackBackoffMaxMs < config.callbackBackoffMinMs) {
    const [min, max] = [environmentName("callbackBackoffMinMs"), environmentName("callbackBackoffMaxMs")];
    conflicts.push(`${max} (${config.callbackBackoffMaxMs}) is below ${min} (${config.callbackBackoffMinMs})`);
  }
  const others = [...accessConflicts(config), ...clusterConflicts(config), ...connectionConflicts(config)];
  return [...conflicts, ...groupConflicts(config, batchBytesMin), ...others];
}

/** The smallest transaction limit, in bytes, of the groups without their own limit. */
function smallestTransaction(config: Config): number {
  const entries = entriesOf(config).filter((entry) => entry.transactionBytesMax === undefined);
  return config.transactionBytesMax ?? Math.min(...entries.map((entry) => transactionOf(entry).bytes));
}

/** Fields about endpoints, which do not apply to the embedded chain. */
const externalFields = ["signer", "registry", "chainId", "feeMaxGwei"] as const;

function groupConflicts(config: Config, batchBytesMin: number): readonly string[] {
  const { groups, defaultGroup } = config;
  if (groups === undefined) return [];
  const ids = groups.map(({ id }) => id);
  const conflicts = groups.flatMap((group, index) =>
    entryConflicts(group, { path: `groups[${index}]`, batchBytesMin }),
  );
  const repeated = ids.find((id, index) => ids.indexOf(id) !== index);
  if (repeated !== undefined) conflicts.push(`groups: ${quote(repeated)} is the id of more than one group`);
  if (groups.filter(({ endpoints }) => endpoints === "embedded").length > 1)
    conflicts.push("groups: more than one group is on the embedded chain; there is only one such chain");
  if (!ids.includes(defaultGroup)) {
    conflicts.push(
      `${environmentName("defaultGroup")}: no group has the id ${quote(defaultGroup)}; the ids are ${ids.join(", ")}`,
    );
  }
  return conflicts;
}

function entryConflicts(
  group: GroupEntry,
  { path, batchBytesMin }: { readonly path: string; readonly batchBytesMin: number },
): string[] {
  const conflicts: string[] = [];
  const { transactionBytesMax = batchBytesMin } = group;
  if (transactionBytesMax < batchBytesMin) conflicts.push(tooSmall(`${path}.transactionBytesMax`, batchBytesMin));
  if (group.fees === "zero" && group.feeMaxGwei !== undefined)
    conflicts.push(`${path}.feeMaxGwei has no effect if "fees" is "zero": remove one of the two`);
  if (group.topicWriters === "everyone" && group.writers.length > 0)
    conflicts.push(`${path}.writers has no effect if "topicWriters" is "everyone": remove one of the two`);
  if (group.endpoints !== "embedded") return conflicts;
  const idle = externalFields.filter((name) => group[name] !== undefined);
  return [...conflicts, ...idle.map((name) => `${path}.${name} has no effect on the embedded chain: remove it`)];
}

function tooSmall(name: string, least: number): string {
  return `${name} must be at least ${least} to carry the longest event (contentBytesMax and extensionsBytesMax)`;
}
