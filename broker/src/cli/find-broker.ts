import { readFileSync } from "node:fs";
import type { Context, Contexts } from "./contexts.ts";
import { type CliIo, UsageError } from "./io.ts";

/** What the flags of every command say of the broker. */
export interface BrokerFlags {
  readonly url?: string | undefined;
  readonly adminUrl?: string | undefined;
  readonly group?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly context?: string | undefined;
}

/** How to reach the broker, as the client takes it. */
interface BrokerAddress {
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly groupId: string | undefined;
  readonly key: string | undefined;
}

export const urlDefault = "http://127.0.0.1:8080";

/** The broker that flags, contexts and environment name together. @throws UsageError for a context that does not exist, or a key that cannot be read. */
export function findBroker(flags: BrokerFlags, contexts: Contexts, env: CliIo["env"]): BrokerAddress {
  return toOptions(flags, findContext(flags, contexts, env), env);
}

/** The context that counts: the one of the flag, or the current one unless another address is named. */
function findContext({ context, url }: BrokerFlags, contexts: Contexts, env: CliIo["env"]): Context | undefined {
  if (context === undefined && (url ?? (env["STELE_URL"] || undefined)) !== undefined) return undefined;
  const { current, contexts: byName } = contexts.read();
  const name = context ?? current;
  if (name === undefined) return undefined;
  const found = byName[name];
  if (found === undefined) throw new UsageError(`there is no context ${name}; see stele context list`);
  return found;
}

/** The key of a context goes only to the address of this context. */
function toOptions(flags: BrokerFlags, context: Context | undefined, env: CliIo["env"]): BrokerAddress {
  return {
    url: flags.url ?? context?.url ?? (env["STELE_URL"] || urlDefault),
    adminUrl: flags.adminUrl ?? context?.adminUrl,
    groupId: flags.group ?? context?.groupId,
    key: flags.keyFile === undefined ? (context?.key ?? (env["STELE_KEY"] || undefined)) : readKey(flags.keyFile),
  };
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    throw new UsageError(`--key-file: ${file} cannot be read`);
  }
}
