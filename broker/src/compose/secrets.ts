import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { BrokerError } from "@stele/wire";
import { isClustered } from "../config/derived.ts";
import { environmentName } from "../config/setting.ts";
import type { Config } from "../config/settings.ts";
import { type Logger, silentLogger } from "../lib/logger.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";
import { readOrCreateSecret, readSecretText } from "../lib/system/secret-file.ts";
import {
  keyBytes,
  parseSecretKeys,
  type SecretKey,
  type SecretKeys,
  toSecretKey,
} from "../store/sealed/secret-keys.ts";

type SecretSettings = Pick<Config, "secretKeyFile" | "databaseUrl">;

export interface SecretOptions {
  readonly folder: DataFolder;
  readonly logger: Logger;
}

const setting = environmentName("secretKeyFile");

/**
 * The keys that encrypt the secrets of subscriptions. They come from `secretKeyFile`, or else from the data folder, where the first secret creates a key. Nodes
 * that share a database need `secretKeyFile`, and refuse secrets without it. @throws Error that shows no key.
 */
export function loadSecretKeys(config: SecretSettings, { folder, logger }: SecretOptions): SecretKeys {
  if (config.secretKeyFile !== "") return new FileKeys(readKeys(config.secretKeyFile, logger), refuse);
  if (isClustered(config)) return new FileKeys([], refuse);
  const file = folder.path("secrets.key");
  return new FileKeys(existsSync(file) ? readKeys(file, logger) : [], () => make(file, logger));
}

/** Reads `secretKeyFile` as the broker does when it starts. Returns the problems, which contain no key. */
export function findSecretProblems({ secretKeyFile }: SecretSettings): readonly string[] {
  if (secretKeyFile === "") return [];
  try {
    readKeys(secretKeyFile, silentLogger);
    return [];
  } catch (error) {
    return [`${setting}: ${error instanceof Error ? error.message : String(error)}`];
  }
}

class FileKeys implements SecretKeys {
  #keys: readonly SecretKey[];
  readonly #make: () => SecretKey;

  constructor(keys: readonly SecretKey[], make: () => SecretKey) {
    this.#keys = keys;
    this.#make = make;
  }

  get count(): number {
    return this.#keys.length;
  }

  newest(): SecretKey {
    const [newest = this.#make()] = this.#keys;
    if (this.#keys.length === 0) this.#keys = [newest];
    return newest;
  }

  find(id: string): SecretKey | undefined {
    return this.#keys.find((key) => key.id === id);
  }
}

function readKeys(file: string, logger: Logger): readonly SecretKey[] {
  return parseSecretKeys(readSecretText(file, logger), file);
}

function make(file: string, logger: Logger): SecretKey {
  try {
    const key = toSecretKey(readOrCreateSecret(file, { bytes: keyBytes, create: () => randomBytes(keyBytes), logger }));
    logger.info("key file made: back it up with the data folder", { file });
    return key;
  } catch (cause) {
    throw new BrokerError("storeUnreachable", { details: "the key file of the data folder cannot be written", cause });
  }
}

function refuse(): never {
  throw new BrokerError("parameterInvalid", {
    details: `"secret" cannot be kept: nodes that share a database need a key file that they share, named by ${setting}`,
  });
}
