import { existsSync } from "node:fs";
import { databaseName } from "../config/database-url.ts";
import { isClustered } from "../config/derived.ts";
import { environmentName } from "../config/setting.ts";
import type { Config } from "../config/settings.ts";
import { type Logger, silentLogger } from "../lib/logger.ts";
import { readSecretText } from "../lib/system/secret-file.ts";
import { parsePostgresAddress } from "../store/sql/postgres/address.ts";

type DatabaseSettings = Pick<Config, "databaseUrl" | "databasePasswordFile">;

/** The database's address with its password. @throws Error, without secrets, if the password file or a TLS file cannot be used. */
export function databaseAddress(config: DatabaseSettings, logger: Logger): string {
  const { databaseUrl } = config;
  checkTlsFiles(databaseUrl, logger);
  const password = readPasswordOf(config, logger);
  if (password === undefined) return databaseUrl;
  return `${databaseUrl}${databaseUrl.includes("?") ? "&" : "?"}password=${encodeURIComponent(password)}`;
}

/** Reads the database's address, TLS files and password file as the broker does when it starts. Returns the problems, which contain no secret. */
export function findDatabaseProblems(config: DatabaseSettings): readonly string[] {
  if (!isClustered(config)) return [];
  return [
    ...problemOf("databaseUrl", () => parsePostgresAddress(config.databaseUrl)),
    ...problemOf("databaseUrl", () => checkTlsFiles(config.databaseUrl, silentLogger)),
    ...problemOf("databasePasswordFile", () => readPasswordOf(config, silentLogger)),
  ];
}

/** The database's address without secrets, for messages. */
export function describeDatabase({ databaseUrl }: DatabaseSettings): string {
  return String(databaseName(databaseUrl));
}

function problemOf(setting: keyof DatabaseSettings, read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (error) {
    return [`${environmentName(setting)}: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** Checks the TLS files early: the driver reads them only when it connects, and reports a missing file as if the server were unreachable. */
function checkTlsFiles(databaseUrl: string, logger: Logger): void {
  const { searchParams } = new URL(databaseUrl);
  const key = searchParams.get("sslkey");
  if (key !== null) readSecretText(key, logger);
  for (const name of ["sslcert", "sslrootcert"]) {
    const file = searchParams.get(name);
    if (file !== null && !existsSync(file)) throw new Error(`${file} does not exist; ${name} in the address names it.`);
  }
}

/** Reads the password file; undefined if the settings name none. Removes a final line break, which editors add. */
function readPasswordOf({ databasePasswordFile: file }: DatabaseSettings, logger: Logger): string | undefined {
  if (file === "") return undefined;
  const password = readSecretText(file, logger).replace(/\r?\n$/, "");
  if (password === "") throw new Error(`${file} is empty; it must contain the database's password.`);
  return password;
}
