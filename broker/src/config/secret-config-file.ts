import { endpointName } from "../lib/endpoint-name.ts";
import { holdsPassword } from "./database-url.ts";
import type { Sources } from "./sources.ts";

/** The config file, if it contains a secret: the database's password, or an endpoint's address that may contain a key. */
export function findSecretConfigFile({ file }: Sources): string | undefined {
  const databaseUrl = file?.given.get("databaseUrl")?.value;
  if (typeof databaseUrl === "string" && holdsPassword(databaseUrl)) return file?.path;
  const groups = file?.given.get("groups")?.value;
  return Array.isArray(groups) && groups.some(hasSecretEndpoint) ? file?.path : undefined;
}

function hasSecretEndpoint(group: unknown): boolean {
  if (typeof group !== "object" || group === null || !("endpoints" in group)) return false;
  const { endpoints } = group;
  return Array.isArray(endpoints) && endpoints.some((address) => isSecret(String(address)));
}

/** Whether `endpointName` hides a part of the address, which may be a key. */
function isSecret(address: string): boolean {
  return endpointName(address).endsWith("…");
}
