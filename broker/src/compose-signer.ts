import { randomBytes } from "node:crypto";
import type { GroupConfig } from "./config/derived.ts";
import type { SignerSource } from "./config/group-fields.ts";
import type { Secrets } from "./config/load-config.ts";
import type { GroupId } from "./domain/group-id.ts";
import { Signer } from "./ledger/evm/native-crypto.ts";
import { openKeystore } from "./ledger/evm/signer/keystore.ts";
import { parsePrivateKey } from "./ledger/evm/signer/private-key.ts";
import { type Logger, silentLogger } from "./lib/logger.ts";
import type { DataFolder } from "./lib/system/data-folder.ts";
import { readOrCreateSecret, readSecretText } from "./lib/system/secret-file.ts";

export interface SignerParts {
  readonly folder: DataFolder;
  readonly secrets: Secrets;
  readonly logger: Logger;
}

/** The key of the embedded chain's only signer. */
export function embeddedKey({ folder, logger }: Pick<SignerParts, "folder" | "logger">): Uint8Array {
  return makeKey(embeddedKeyFile(folder), logger);
}

/** Where the key of the embedded chain's signer is. */
export function embeddedKeyFile(folder: DataFolder): string {
  return folder.path("signer.key");
}

/** Where the key of a group is whose configuration names none. */
export function groupKeyFile(folder: DataFolder, id: GroupId): string {
  return folder.path(`signer-${encodeURIComponent(id)}.key`);
}

/** A group's private key, from where it is said to be, or made in the data folder. @throws Error that shows no secret. */
export async function loadKey({ id, signer }: GroupConfig, parts: SignerParts): Promise<Uint8Array> {
  if (signer !== undefined) return readKey(signer, parts);
  const file = groupKeyFile(parts.folder, id);
  const key = makeKey(file, parts.logger);
  parts.logger.info("signer's key is in the data folder", { file, signer: new Signer(key).address });
  return key;
}

/** What is wrong with where the keys of groups are said to be, by trying them as a start does; no secret is in it. */
export async function findSignerProblems(groups: readonly GroupConfig[], secrets: Secrets): Promise<readonly string[]> {
  const problems = await Promise.all(
    groups.map(async ({ id, signer }) => {
      if (signer === undefined) return [];
      try {
        await readKey(signer, { secrets, logger: silentLogger });
        return [];
      } catch (error) {
        return [`group ${id}: signer: ${error instanceof Error ? error.message : String(error)}`];
      }
    }),
  );
  return problems.flat();
}

type SourceParts = Omit<SignerParts, "folder">;

async function readKey(signer: SignerSource, parts: SourceParts): Promise<Uint8Array> {
  if ("privateKeyEnv" in signer) {
    return parsePrivateKey(readVariable(signer.privateKeyEnv, parts), signer.privateKeyEnv);
  }
  if ("privateKeyFile" in signer) {
    return parsePrivateKey(readFile(signer.privateKeyFile, parts), signer.privateKeyFile);
  }
  const source = signer.keystoreFile;
  const text = readFile(source, parts);
  const key = await openKeystore(text, { password: readPassword(signer, parts), source });
  return parsePrivateKey(Buffer.from(key).toString("hex"), source);
}

/** Editors end a file with a line break, which is no part of a password. */
function readPassword(signer: Extract<SignerSource, { keystoreFile: string }>, parts: SourceParts): string {
  return "passwordFile" in signer
    ? readFile(signer.passwordFile, parts).replace(/\r?\n$/, "")
    : readVariable(signer.passwordEnv, parts);
}

function readVariable(name: string, { secrets }: SourceParts): string {
  return secrets.get(name) ?? "";
}

function readFile(file: string, { logger }: SourceParts): string {
  return readSecretText(file, logger);
}

function makeKey(file: string, logger: Logger): Uint8Array {
  return readOrCreateSecret(file, { bytes: 32, create: () => randomBytes(32), logger });
}
