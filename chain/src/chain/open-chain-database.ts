import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { ChainFileError } from "../chain-file-error.ts";
import type { WorkerSettings } from "../messages.ts";
import type { NativeCalls } from "../native-calls.ts";
import { ChainDatabase } from "../storage/chain-database.ts";
import { HeadFile } from "../storage/head-file.ts";
import { explainOpening, isInMemory, openDatabase } from "../storage/open-database.ts";
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from "../storage/schema.ts";
import { checkHead } from "./check-head.ts";

const ifDamaged = "if you changed nothing, the file is damaged: restore its folder from a backup.";

/**
 * Opens the chain's file, and creates its tables if it is new.
 * @throws ChainFileError if the file cannot be used: for instance if it belongs to another chain, or lacks blocks that its head file knows.
 */
export async function openChainDatabase(settings: WorkerSettings, calls: NativeCalls): Promise<ChainDatabase> {
  const database = await openTables(settings, calls);
  try {
    checkHead(database, settings);
    return database;
  } catch (cause) {
    database.close({ keepsLog: true });
    throw cause;
  }
}

async function openTables(settings: WorkerSettings, calls: NativeCalls): Promise<ChainDatabase> {
  const { file, filePagesMax } = settings;
  const owned = await openDatabase(file, calls);
  const { database } = owned;
  try {
    prepareTables(database, file);
    if (filePagesMax !== undefined) database.exec(`PRAGMA max_page_count = ${filePagesMax}`);
    const headFile = isInMemory(file) ? undefined : new HeadFile(file, () => owned.isMoved());
    const chainDatabase = new ChainDatabase(database, owned, headFile);
    checkSettings(chainDatabase, settings);
    return chainDatabase;
  } catch (cause) {
    owned.close({ keepsLog: true });
    throw cause instanceof ChainFileError ? cause : explainOpening(file, cause);
  }
}

function prepareTables(database: DatabaseSyncInstance, file: string): void {
  const version = readPragma(database, "user_version");
  const applicationId = readPragma(database, "application_id");
  if (version === SCHEMA_VERSION && applicationId === APPLICATION_ID) return;
  const tables = database.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as { count: number };
  if (version !== 0 || applicationId !== 0 || tables.count > 0) {
    throw new ChainFileError(
      `The file ${file} is not a chain of this version of Stele (version ${version}, expected ${SCHEMA_VERSION}). Use the version that made it; ${ifDamaged}`,
    );
  }
  database.exec(
    `BEGIN; ${SCHEMA} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`,
  );
}

function readPragma(database: DatabaseSyncInstance, name: string): number {
  return (database.prepare(`PRAGMA ${name}`).get() as Record<string, number>)[name] ?? 0;
}

function checkSettings(database: ChainDatabase, { file, chainId, genesisAccounts }: WorkerSettings): void {
  const storedId = database.readSetting("chainId");
  if (storedId === undefined) return;
  if (storedId !== String(chainId)) {
    throw new ChainFileError(
      `The chain in ${file} has chain id ${storedId}, not ${chainId}. Use its own id, or another file; ${ifDamaged}`,
    );
  }
  const funded = (database.readSetting("genesisAccounts") ?? "").split(",");
  const stranger = genesisAccounts.find((account) => !funded.includes(account.toLowerCase()));
  if (stranger !== undefined) {
    throw new ChainFileError(
      `The chain in ${file} was made for other accounts: ${stranger} was not funded at its genesis. Use the key that the chain was made with; ${ifDamaged}`,
    );
  }
}
