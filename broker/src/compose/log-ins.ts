import type { Config } from "../config/settings.ts";
import type { LogIn } from "../gateway/console/log-in/log-in.ts";
import { type Logger, silentLogger } from "../lib/logger.ts";
import { readSecretText } from "../lib/system/secret-file.ts";
import { OidcProvider } from "../tokens/oidc-provider.ts";

/** The log-ins that the console offers besides keys; undefined if there are none. @throws Error if the secret of a client cannot be read. */
export function createLogIns({ access }: Pick<Config, "access">, logger: Logger): readonly LogIn[] | undefined {
  const logIns = (access?.tokens ?? []).flatMap(({ issuer, logIn }) => {
    if (logIn === undefined) return [];
    const { name, origins, clientSecretFile: file, ...client } = logIn;
    if (file !== undefined) readSecret(file, logger);
    const read = file === undefined ? undefined : () => readSecret(file, silentLogger);
    return [{ name, issuer, origins, provider: new OidcProvider({ ...client, issuer, readSecret: read }, { logger }) }];
  });
  return logIns.length === 0 ? undefined : logIns;
}

/** Reads the files that log-ins name as the broker does when it starts, and returns the problems. */
export function findLogInProblems(config: Pick<Config, "access">): readonly string[] {
  try {
    createLogIns(config, silentLogger);
    return [];
  } catch (error) {
    return [`access.tokens: ${error instanceof Error ? error.message : String(error)}`];
  }
}

function readSecret(file: string, logger: Logger): string {
  const secret = readSecretText(file, logger).trim();
  if (secret === "") throw new Error(`${file} is empty; it must contain the secret of a client.`);
  return secret;
}
