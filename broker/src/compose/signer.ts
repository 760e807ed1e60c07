import { randomBytes } from "node:crypto";
import { Signer } from "@stele/eth/node";
import type { GroupConfig } from "../config/derived.ts";
import type { SignerSource } from "../config/group-fields.ts";
import type { Secrets } from "../config/load-config.ts";
import type { GroupId } from "../domain/group-id.ts";
import { openKeystore } from "../ledger/evm/signer/keystore.ts";
import { parsePrivateKey } from "../ledger/evm/signer/private-key.ts";
import { type Logger, silentLogger } from "../lib/logger.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";
import { readOrCreateSecret, readSecretText } from "../lib/system/secret-file.ts";

export interface SignerOptions {
  readonly folder: DataFolder;
  readonly secrets: Secrets;
  readonly logger: Logger;
}

/** The key of the embedded chain's only signer; created if missing. */
export function embeddedKey({ folder, logger }: Pick<SignerOptions, "folder" | "logger">): Uint8Array {
  return makeKey(embeddedKeyFile(folder), logger);
}

/** The file with the key of the embedded chain's signer. */
export function embeddedKeyFile(folder: DataFolder): string {
  return folder.path("signer.key");
}

/** The file with the key of a group whose configuration names no signer. */
export function groupKeyFile(folder: DataFolder, id: GroupId): string {
  return folder.path(`signer-${encodeURIComponent(id)}.key`);
}

/** A group's private key: from the configured source, else from the data folder, where it is created if missing. @throws Error that shows no secret. */
export async function loadKey({ id, signer }: GroupConfig, options: SignerOptions): Promise<Uint8Array> {
  if (signer !== undefined) return readKey(signer, options);
  const file = groupKeyFile(options.folder, id);
  const key = makeKey(file, options.logger);
  options.logger.info("signer's key is in the data folder", { file, signer: new Signer(key).address });
  return key;
}

/** Reads the configured keys of groups as the broker does when it starts. Returns the problems, which contain no secret. */
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

type SourceOptions = Omit<SignerOptions, "folder">;

async function readKey(signer: SignerSource, options: SourceOptions): Promise<Uint8Array> {
  if ("privateKeyEnv" in signer) {
    return parsePrivateKey(readVariable(signer.privateKeyEnv, options), signer.privateKeyEnv);
  }
  if ("privateKeyFile" in signer) {
    return parsePrivateKey(readFile(signer.privateKeyFile, options), signer.privateKeyFile);
  }
  const source = signer.keystoreFile;
  const text = readFile(source, options);
  const key = await openKeystore(text, { password: readPassword(signer, options), source });
  return parsePrivateKey(Buffer.from(key).toString("hex"), source);
}

/** The password of a keystore. Editors end a file with a line break, which is not part of the password. */
function readPassword(signer: Extract<SignerSource, { keystoreFile: string }>, options: SourceOptions): string {
  return "passwordFile" in signer
    ? readFile(signer.passwordFile, options).replace(/\r?\n$/, "")
    : readVariable(signer.passwordEnv, options);
}

function readVariable(name: string, { secrets }: SourceOptions): string {
  return secrets.get(name) ?? "";
}

function readFile(file: string, { logger }: SourceOptions): string {
  return readSecretText(file, logger);
}

function makeKey(file: string, logger: Logger): Uint8Array {
  return readOrCreateSecret(file, { bytes: 32, create: () => randomBytes(32), logger });
}
