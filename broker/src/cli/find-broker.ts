import { readFileSync, statSync } from "node:fs";
import type { Context, Contexts } from "./contexts.ts";
import { checkHttpUrl } from "./http-url.ts";
import { type CliIo, UsageError } from "./io.ts";

/** The flags that choose the broker. */
export interface BrokerFlags {
  readonly url?: string | undefined;
  readonly adminUrl?: string | undefined;
  readonly group?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly context?: string | undefined;
}

/** How to reach the broker, as options of the client. */
export interface BrokerAddress {
  readonly url: string;
  /** Whether neither a flag, nor a context, nor STELE_URL names the broker. */
  readonly isDefault: boolean;
  readonly adminUrl: string | undefined;
  readonly groupId: string | undefined;
  /** Called for each request. */
  readonly key: (() => string) | undefined;
}

export const urlDefault = "http://127.0.0.1:8080";

/**
 * Finds the broker by flags, contexts and environment.
 * @throws UsageError for a context that does not exist, an unreadable key file, an invalid URL, or a blank group.
 */
export function findBroker(flags: BrokerFlags, contexts: Contexts, env: CliIo["env"]): BrokerAddress {
  const address = toOptions(flags, findContext(flags, contexts, env), env);
  checkGroup(address.groupId);
  checkHttpUrl(address.url, "the address of the broker");
  checkHttpUrl(address.adminUrl ?? address.url, "the address for operators");
  return address;
}

/**
 * @throws UsageError for a blank group. A blank group may come from an unset variable of a script, so it must stand neither for the default group nor for all
 * groups.
 */
export function checkGroup(groupId: string | undefined): void {
  if (groupId?.trim() === "") throw new UsageError("the group of --group or the context is blank: name one, or none");
}

/** The context to use: that of `--context`, else the current one, unless `--url` or STELE_URL names a broker. */
function findContext({ context, url }: BrokerFlags, contexts: Contexts, env: CliIo["env"]): Context | undefined {
  if (context === undefined && (url ?? (env["STELE_URL"] || undefined)) !== undefined) return undefined;
  const { current, contexts: byName } = contexts.read();
  const name = context ?? current;
  if (name === undefined) return undefined;
  const found = Object.hasOwn(byName, name) ? byName[name] : undefined;
  if (found === undefined) throw new UsageError(`there is no context ${name}; see stele context list`);
  return found;
}

/** A context's key never goes to the address of `--url` or STELE_URL: with those, `context` is undefined. */
function toOptions(flags: BrokerFlags, context: Context | undefined, env: CliIo["env"]): BrokerAddress {
  const named = flags.url ?? context?.url ?? (env["STELE_URL"] || undefined);
  return {
    url: named ?? urlDefault,
    isDefault: named === undefined,
    adminUrl: flags.adminUrl ?? context?.adminUrl,
    groupId: flags.group ?? context?.groupId,
    key: flags.keyFile === undefined ? always(context?.key ?? (env["STELE_KEY"] || undefined)) : keyIn(flags.keyFile),
  };
}

function always(key: string | undefined): (() => string) | undefined {
  return key === undefined ? undefined : () => key;
}

/**
 * Reads the file again for each request, since another program may renew a token while a command runs. Keeps the last key while the file cannot be read. A pipe
 * or a terminal gives its key once: another read would wait for ever.
 */
function keyIn(file: string): () => string {
  let key = readKey(file);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return () => key;
  return () => {
    try {
      key = readKey(file);
    } catch {
      // The last key may still be valid.
    }
    return key;
  };
}

function readKey(file: string): string {
  let key: string;
  try {
    key = readFileSync(file, "utf8").trim();
  } catch {
    throw new UsageError(`--key-file: ${file} cannot be read`);
  }
  if (key === "") throw new UsageError(`--key-file: ${file} is empty`);
  return key;
}
