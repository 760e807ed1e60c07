import { accessSync, constants, readdirSync, readlinkSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { type Logger, silentLogger } from "../logger.ts";
import { describeOwner, formatMode, giveToFolderOwner } from "./file-owner.ts";
import { makeFolderSync } from "./make-folder.ts";

/** A data folder that this process uses exclusively until it releases it. */
export interface DataFolder {
  /** Absolute path of a file in the folder. */
  path(file: string): string;
  /** Releases the lock. As root, gives new lock files and a new head file to the folder's owner. */
  release(): void;
}

/** The folder cannot be used; the message says why and what to do. */
export class DataFolderError extends Error {
  override readonly name = "DataFolderError";
}

/** Another process uses the folder. */
export class FolderInUseError extends DataFolderError {}

const othersRights = 0o077;
const { R_OK, W_OK, X_OK } = constants;

/** Lock files, and the head file of the embedded chain. */
const commandFiles = /^(?:lock|chain\.sqlite-(?:lock|head))$/;
const databases = /^(chain|store|keys)\.sqlite/;
/** Paths in a data folder, and the access that this process needs to each. */
const fileRights: readonly (readonly [name: RegExp, rights: number])[] = [
  [/^lock$/, R_OK | W_OK],
  [databases, R_OK | W_OK],
  [/\.key$/, R_OK],
];

/**
 * Creates the folder if it is missing and locks it for this process. The lock is one of the operating system, held through SQLite. It ends with the process,
 * even if the process is killed. Logs a warning if another user owns the folder or can open it.
 * @throws DataFolderError if the folder cannot be created, read, written or locked, one of its files cannot be used, one of its databases is a link, or another
 * process uses it.
 */
export function openDataFolder(folder: string, logger: Logger = silentLogger): DataFolder {
  const root = resolve(folder);
  makeUsable(root);
  refuseLinks(root);
  const before = new Set(readdirSync(root));
  const lock = takeLock(root);
  if (process.platform !== "win32") warnOfUsers(root, logger);
  const release = (): void => {
    giveNewFiles(root, before);
    lock.close();
  };
  return { path: (file) => resolve(root, file), release };
}

/** Gives away the files that `stele scrub` creates in a restored folder. Never throws: the next start names a file that it cannot use, and says what to do. */
function giveNewFiles(root: string, before: ReadonlySet<string>): void {
  try {
    const names = readdirSync(root).filter((name) => commandFiles.test(name) && !before.has(name));
    for (const name of names) giveToFolderOwner(resolve(root, name));
  } catch {
    // The folder is gone, or this disk has no owners.
  }
}

function makeUsable(root: string): void {
  let path = root;
  try {
    makeFolderSync(root);
    if (!statSync(root).isDirectory()) throw new Error("it is not a folder");
    accessSync(root, R_OK | W_OK | X_OK);
    for (const name of readdirSync(root)) {
      path = resolve(root, name);
      accessSync(path, fileRights.find(([pattern]) => pattern.test(name))?.[1] ?? constants.F_OK);
    }
  } catch (cause) {
    const place = path === root ? "" : `${path}: `;
    const isRefused = cause instanceof Error && "code" in cause && (cause.code === "EACCES" || cause.code === "EPERM");
    const reason = `${messageOf(cause)}${isRefused ? describeOwner(path) : ""}`;
    throw new DataFolderError(
      `The data folder ${root} cannot be read and written: ${place}${reason}. Fix that, or choose another folder by --data-dir or STELE_DATA_DIR.`,
      { cause },
    );
  }
}

/**
 * SQLite follows a link and keeps its log beside the target. The broker's locks, and its checks of the log, use the name in the folder. Also, whoever
 * may write to the folder could use a link to make a command that runs as root write elsewhere.
 * @throws DataFolderError if one of the folder's databases is a link.
 */
export function refuseLinks(root: string): void {
  const entries = readdirSync(root, { withFileTypes: true });
  const link = entries.find((entry) => entry.isSymbolicLink() && databases.test(entry.name));
  if (link === undefined) return;
  const file = resolve(root, link.name);
  throw new DataFolderError(
    [
      `${file} is a symbolic link: a broker with another data folder could write the same file, and the log of the database is beside the target.`,
      `Stop each broker that uses ${resolve(root, readlinkSync(file))}. Then replace the link by that file, together with the files beside it whose names begin with its name.`,
      "To keep the data elsewhere, make the data folder itself a link, or name the other folder by --data-dir or STELE_DATA_DIR.",
    ].join(" "),
  );
}

function warnOfUsers(root: string, logger: Logger): void {
  const { mode, uid } = statSync(root);
  const user = process.getuid?.();
  if ((mode & othersRights) !== 0) {
    logger.warn("data folder is open to other users", {
      folder: root,
      mode: formatMode(mode),
      remedy: `chmod 700 ${root}`,
    });
  }
  if (user !== undefined && uid !== user) {
    logger.warn("data folder belongs to another user", {
      folder: root,
      owner: uid,
      runsAs: user,
      remedy: "run the broker as the folder's owner: that user cannot open the files that this process creates",
    });
  }
}

function takeLock(root: string): InstanceType<typeof DatabaseSync> {
  const file = resolve(root, "lock");
  try {
    const lock = new DatabaseSync(file);
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    const message = messageOf(cause);
    if (/locked|busy/i.test(message)) {
      throw new FolderInUseError(
        `The data folder ${root} is in use by another broker. Stop that one, or give this one another folder.`,
        { cause },
      );
    }
    throw new DataFolderError(
      `The data folder cannot be locked by ${file}: ${message}. Check the folder's name and permissions, and the disk's free space.`,
      { cause },
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
