import { createHash } from "node:crypto";
import { join } from "node:path";
import { databaseAddress } from "./database.ts";
import { exposedHosts } from "../config/access-conflicts.ts";
import { isClustered } from "../config/derived.ts";
import { environmentName } from "../config/setting.ts";
import type { Config } from "../config/settings.ts";
import { adminRole, adminRules } from "../domain/access-role.ts";
import type { AccessRule } from "../domain/access-rule.ts";
import type { KeyOptions } from "../engine/access/create-access.ts";
import type { Logger } from "../lib/logger.ts";
import type { ApiKeys } from "../ports/api-keys.ts";
import type { Clock } from "../ports/clock.ts";
import { createSqliteApiKeys } from "../store/sql/sqlite/sqlite-api-keys.ts";
import { JwtVerifier } from "../tokens/jwt-verifier.ts";
import { readKeyDocument } from "../tokens/key-source.ts";

interface AccessParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called if a part fails without which the broker cannot run. */
  readonly onFailure: (failure: Error) => void;
}

/** How the broker authenticates clients; undefined if access control is off. Then it logs a warning if other machines reach the broker. */
export async function createKeyOptions(config: Config, parts: AccessParts): Promise<KeyOptions | undefined> {
  const { logger } = parts;
  if (config.access === undefined) {
    warnOfAnonymous(config, logger);
    return undefined;
  }
  const tokens = createTokenOptions(config, parts);
  const { certificates, quotas } = config.access;
  const apiKeys = await createApiKeys(config, parts);
  return { apiKeys, roles: rolesOf(config), certificates, quotas, sha256, tokens };
}

function createTokenOptions({ access }: Config, parts: AccessParts): KeyOptions["tokens"] {
  const issuers = access?.tokens ?? [];
  if (issuers.length === 0) return undefined;
  const mappings = new Map(
    issuers.map(({ issuer, tenant, tenantClaim, aclClaim, roles, ...same }) => [
      issuer,
      { ...same, tenant, tenantClaim, aclClaim, roles: new Map(Object.entries(roles)) },
    ]),
  );
  return { verifier: new JwtVerifier(issuers, { ...parts, read: readKeyDocument }), mappings };
}

/** The table of keys: in the database that nodes share, else in a file of the data folder, which must exist. */
export async function createApiKeys(
  config: Config,
  { logger, onFailure: onFault }: Pick<AccessParts, "logger"> & Partial<AccessParts>,
): Promise<ApiKeys> {
  if (!isClustered(config)) return createSqliteApiKeys(join(config.dataDir, "keys.sqlite"), { onFault });
  const { createPostgresApiKeys } = await import("../store/sql/postgres/postgres-api-keys.ts");
  return createPostgresApiKeys({ url: databaseAddress(config, logger), logger, onFault });
}

/** The configured roles, and the built-in role. */
export function rolesOf({ access }: Pick<Config, "access">): ReadonlyMap<string, readonly AccessRule[]> {
  return new Map([...Object.entries(access?.roles ?? {}), [adminRole, adminRules]]);
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function warnOfAnonymous(config: Config, logger: Logger): void {
  const hosts = exposedHosts(config).map((name) => config[name]);
  if (hosts.length === 0) return;
  logger.warn("ANYBODY WHO REACHES THIS BROKER MAY DO EVERYTHING", {
    host: hosts.join(", "),
    setting: environmentName("allowAnonymous"),
    remedy: "configure access, see docs/access.md",
  });
}
