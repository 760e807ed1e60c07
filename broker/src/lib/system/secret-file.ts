import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Logger } from "../logger.ts";
import { describeFileError } from "./file-owner.ts";
import { syncFolder } from "./sync-folder.ts";

const secretMode = 0o600;
/** All access of the file's group and of other users. */
const othersRights = 0o077;

/**
 * Reads a secret that is stored as hexadecimal text. If the file is missing, creates it with the result of `create`, for the owner alone, and
 * returns after the file is synced to disk. A process killed meanwhile leaves no partial secret. Logs a warning if other users can open the file.
 * @throws Error if the file cannot be read or created, or does not contain `bytes` bytes.
 */
export function readOrCreateSecret(
  file: string,
  options: { readonly bytes: number; readonly create: () => Uint8Array; readonly logger: Logger },
): Uint8Array {
  const text = readIfThere(file, options.logger) ?? makeSecret(file, options.create());
  const secret = Buffer.from(text.trim(), "hex");
  if (secret.byteLength !== options.bytes) {
    throw new Error(`${file} does not hold ${options.bytes} bytes in hexadecimal; restore it from a backup.`);
  }
  return new Uint8Array(secret);
}

/**
 * Reads a secret from a file that somebody else maintains. Logs a warning if other users can open it.
 * @throws Error that names the file and the reason if it cannot be read.
 */
export function readSecretText(file: string, logger: Logger): string {
  const text = readIfThere(file, logger);
  if (text === undefined) throw new Error(`${file} does not exist; it must contain a secret.`);
  return text;
}

/** Logs a warning if users other than the owner can open a file that contains a secret among other things. @throws Error if the file is missing. */
export function checkSecretFile(file: string, logger: Logger): void {
  warnOfRights(file, statSync(file), logger);
}

function readIfThere(file: string, logger: Logger): string | undefined {
  try {
    const handle = openSync(file, "r");
    try {
      warnOfRights(file, fstatSync(handle), logger);
      return readFileSync(handle, "utf8");
    } finally {
      closeSync(handle);
    }
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return undefined;
    throw new Error(`${file} cannot be read: ${describeFileError(file, cause)}`, { cause });
  }
}

/**
 * Warns if other users can open the file, but does not refuse it. ssh refuses such a key, which costs one user one login. A broker that does not start fails
 * for everybody, and on some volumes every file has the permissions of the volume.
 */
function warnOfRights(file: string, stats: Stats, logger: Logger): void {
  if (process.platform === "win32" || !stats.isFile() || (stats.mode & othersRights) === 0) return;
  logger.warn("secret file is open to other users", {
    file,
    mode: `0${(stats.mode & 0o777).toString(8)}`,
    remedy: `chmod 600 ${file}`,
  });
}

function makeSecret(file: string, secret: Uint8Array): string {
  try {
    return writeSecret(file, Buffer.from(secret).toString("hex"));
  } catch (cause) {
    throw new Error(
      `${file} cannot be created: ${messageOf(cause)}; check the folder's permissions and the disk's free space`,
      {
        cause,
      },
    );
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function writeSecret(file: string, text: string): string {
  const draft = `${file}.draft`;
  rmSync(draft, { force: true });
  const handle = openSync(draft, "wx", secretMode);
  try {
    writeSync(handle, `${text}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  linkSync(draft, file);
  rmSync(draft);
  syncFolder(dirname(file));
  return text;
}
