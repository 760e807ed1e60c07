import { databaseName } from "./config/database-url.ts";
import { isClustered } from "./config/derived.ts";
import { environmentName } from "./config/setting.ts";
import type { Config } from "./config/settings.ts";
import { type Logger, silentLogger } from "./lib/logger.ts";
import { isReadByOthers, readSecretText } from "./lib/system/secret-file.ts";
import { parsePostgresAddress } from "./store/sql/postgres/address.ts";

type DatabaseSettings = Pick<Config, "databaseUrl" | "databasePasswordFile">;

/** The database's address with its password. @throws Error that shows no secret. */
export function databaseAddress(config: DatabaseSettings, logger: Logger): string {
  const { databaseUrl, databasePasswordFile } = config;
  if (databasePasswordFile === "") return databaseUrl;
  const password = readPassword(databasePasswordFile, logger);
  return `${databaseUrl}${databaseUrl.includes("?") ? "&" : "?"}password=${encodeURIComponent(password)}`;
}

/** What is wrong with the database's address, and with where its password is said to be, by reading them as a start does; no secret is in it. */
export function findDatabaseProblems(config: DatabaseSettings): readonly string[] {
  if (!isClustered(config)) return [];
  return [
    ...problemOf("databaseUrl", () => parsePostgresAddress(config.databaseUrl)),
    ...problemOf("databasePasswordFile", () => databaseAddress(config, silentLogger)),
  ];
}

/** The database as messages may name it. */
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

/** Editors end a file with a line break, which is no part of a password. */
function readPassword(file: string, logger: Logger): string {
  const password = readSecretText(file).replace(/\r?\n$/, "");
  if (password === "") throw new Error(`${file} is empty; it is to hold the database's password.`);
  if (isReadByOthers(file)) logger.warn("secret file can be read by others: take their rights away", { file });
  return password;
}
