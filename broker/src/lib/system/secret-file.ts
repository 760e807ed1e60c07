import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";

const secretMode = 0o600;
const othersRead = 0o044;

/**
 * The bytes of a secret kept as hexadecimal text. A file that is missing is made with what `create` gives, for the owner alone, and is
 * wholly on disk when this returns; a process killed meanwhile leaves no half a secret.
 * @throws Error when the file does not hold `bytes` bytes.
 */
export function readOrCreateSecret(
  file: string,
  options: { readonly bytes: number; readonly create: () => Uint8Array },
): Uint8Array {
  const text = readIfThere(file) ?? writeSecret(file, Buffer.from(options.create()).toString("hex"));
  const secret = Buffer.from(text.trim(), "hex");
  if (secret.byteLength !== options.bytes) {
    throw new Error(`${file} does not hold ${options.bytes} bytes in hexadecimal; restore it from a backup.`);
  }
  return new Uint8Array(secret);
}

/** The text of a secret that somebody else keeps. @throws Error that names the file and says why it cannot be read. */
export function readSecretText(file: string): string {
  let text: string | undefined;
  try {
    text = readIfThere(file);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${file} cannot be read: ${reason}`, { cause });
  }
  if (text === undefined) throw new Error(`${file} does not exist; it is to hold a secret.`);
  return text;
}

/** Whether users other than the file's owner may read it. */
export function isReadByOthers(file: string): boolean {
  return process.platform !== "win32" && (statSync(file).mode & othersRead) !== 0;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
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

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
