import { randomBytes } from "node:crypto";
import { rolesOf, sha256 } from "./access.ts";
import {
  type CommandDone,
  type CommandOutcome,
  type CommandContext,
  type CommandWords,
  refuseFurther,
  runOnKeys,
  UsageError,
} from "./access-command.ts";
import type { Config } from "../config/settings.ts";
import { namePattern, nameRule, reservedName } from "../domain/access-rule.ts";
import { toOwnerId } from "../engine/access/caller.ts";
import { formatKeyCredential } from "../engine/access/credential.ts";
import { toEscaped } from "../lib/printable.ts";
import type { ApiKey, ApiKeys } from "../ports/api-keys.ts";

const usage = `Usage: stele key create --principal NAME --role ROLE [--role ROLE ...] [--tenant NAME] [--expires 30d]
       stele key list
       stele key revoke ID

Creates, lists and revokes keys of clients. Running brokers learn of a change within a second. Give the command the broker's settings, such as
--data-dir or --config. "create" prints the key. The broker does not store it, only its digest.

"--expires" takes a number of s, m, h or d; without it the key is valid until it is revoked. Roles are those of the setting "access", those of
"stele role", and "admin", which allows everything. Several keys may have the same principal: to replace a key, create
another one, give it to the client, then revoke the first.

"-o table" (the default), "-o json" and "-o ndjson" choose the format of the result.

Examples:
  stele key create --principal shop --role publisher --expires 90d > key.txt
  stele key list -o json
  stele key revoke 0b3a1f5e7c5d4d0e
`;

/** Maximum number of keys that are valid at once in one broker. */
const keysMax = 10_000;
/** How long a revoked or expired key stays in the list, at least. */
const keptMs = 30 * 24 * 60 * 60 * 1000;
const dayMs = 24 * 60 * 60 * 1000;
/** Longest validity of a key that expires, in milliseconds: ten years. */
const validMsMax = 3_650 * dayMs;
const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: dayMs };
const secretBytes = 32;
const idBytes = 8;
/** Maximum number of arguments of each action, besides flags. */
const wordsMax: Readonly<Record<string, number>> = { create: 0, list: 0, revoke: 1 };

/** Runs `stele key` with the arguments after that word. Never throws. */
export async function runKeys(argv: readonly string[], context: CommandContext): Promise<CommandOutcome> {
  const [action, ...words] = argv;
  if (action === undefined) return { exitCode: 2, output: "", problem: usage };
  if (argv.includes("--help") || argv.includes("-h")) return { exitCode: 0, output: usage, problem: "" };
  const { now } = context;
  const ownFlags = ["--principal", "--tenant", "--expires", "--role"];
  const createsFolder = action === "create";
  return runOnKeys("key", { ...context, words, ownFlags, createsFolder }, (keys, { config, read }) =>
    run(keys, { action, command: toCommand(read), now, config }),
  );
}

interface KeyCommand extends CommandWords {
  readonly principal: string | undefined;
  readonly tenant: string | undefined;
  readonly expires: string | undefined;
  readonly roles: readonly string[];
}

interface Run {
  readonly action: string;
  readonly command: KeyCommand;
  readonly config: Config;
  readonly now: () => number;
}

function toCommand(read: CommandWords): KeyCommand {
  const last = (flag: string): string | undefined => read.given.get(flag)?.at(-1);
  return {
    ...read,
    principal: last("--principal"),
    tenant: last("--tenant"),
    expires: last("--expires"),
    roles: read.given.get("--role") ?? [],
  };
}

async function run(keys: ApiKeys, { action, command, now, config }: Run): Promise<CommandDone> {
  refuseFurther(command.positional, wordsMax[action]);
  switch (action) {
    case "create":
      return create(keys, command, { now: now(), config });
    case "list":
      return list(await keys.listApiKeys(0), now());
    case "revoke":
      return revoke(keys, command, now());
    default:
      throw new UsageError(`"${action}" is none of create, list, revoke; see stele key --help`);
  }
}

async function create(
  keys: ApiKeys,
  command: KeyCommand,
  { now, config }: { readonly now: number; readonly config: Config },
): Promise<CommandDone> {
  const { principal, tenant, roles } = command;
  checkName("--principal", principal);
  if (tenant !== undefined) checkName("--tenant", tenant);
  const stored = (await keys.readRoles(0))?.roles ?? [];
  const known = new Set([...rolesOf(config).keys(), ...stored.map((role) => role.name)]);
  const unknown = roles.find((role) => !known.has(role));
  if (unknown !== undefined) throw new UsageError(`--role ${unknown} is none of the roles ${[...known].join(", ")}`);
  if (roles.length === 0) throw new UsageError("--role is missing");
  const secret = randomBytes(secretBytes).toString("base64url");
  const id = randomBytes(idBytes).toString("hex");
  const digest = sha256(secret);
  const times = { createdAt: now, expiresAt: toExpiry(command.expires, now), revokedAt: undefined };
  // Lasting roles do not count for a principal that had a key.
  const keepsOwners = config.access?.tokens.some(({ lastingRoles }) => lastingRoles.length > 0) === true;
  await keys.pruneApiKeys(now - keptMs, { keepsOwners });
  if (!(await keys.insertApiKey({ id, digest, principal, tenant, roles, ...times }, keysMax))) {
    throw new Error(`there are ${keysMax} valid keys already: revoke those that nobody needs`);
  }
  const change = { action: "key create", keyId: id, principal: toOwnerId(principal, tenant), tenant };
  const key = formatKeyCredential({ id, secret });
  const expiry = times.expiresAt === undefined ? {} : { expiresAt: new Date(times.expiresAt).toISOString() };
  return { output: `${key}\n`, result: { id, principal, tenant, roles, ...expiry, key }, change };
}

function checkName(flag: string, name: string | undefined): asserts name is string {
  if (name === undefined || !namePattern.test(name)) throw new UsageError(`${flag} must be ${nameRule}`);
  if (name === reservedName)
    throw new UsageError(`${flag} cannot be ${name}: callers without a credential have this name`);
}

function toExpiry(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const [, count = "", unit = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const validMs = Number(count) * (unitMs[unit] ?? 0);
  if (validMs === 0 || validMs > validMsMax)
    throw new UsageError("--expires must be like 90s, 12h or 30d, and at most 3650d");
  return now + validMs;
}

/** Revokes the key with an identifier. Also accepts the whole key: whoever finds a key need not know which part is its identifier. */
async function revoke(keys: ApiKeys, { positional: [text = ""] }: KeyCommand, now: number): Promise<CommandDone> {
  const [, id = ""] = /^(?:stele_)?([0-9a-f]{16})(?:_.*)?$/.exec(text) ?? [];
  if (id === "") throw new UsageError("give the identifier of a key, 16 hexadecimal digits");
  if (!(await keys.revokeApiKey(id, now))) throw new Error(`there is no key ${id}`);
  return { output: `revoked ${id}\n`, result: { id, state: "revoked" }, change: { action: "key revoke", keyId: id } };
}

function list(all: readonly ApiKey[], now: number): CommandDone {
  const result = all.map(({ id, principal, tenant, roles, createdAt, expiresAt, revokedAt }) => ({
    id,
    principal,
    tenant,
    roles,
    state: toState(expiresAt, revokedAt, now).split(" ")[0],
    createdAt: new Date(createdAt).toISOString(),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    ...(revokedAt === undefined ? {} : { revokedAt: new Date(revokedAt).toISOString() }),
  }));
  return { output: all.map((key) => toLine(key, now)).join(""), result };
}

/** Escaped: whoever can write to the table can put any text there, such as a line break. */
function toLine({ id, principal, tenant, roles, expiresAt, revokedAt }: ApiKey, now: number): string {
  const cells = [id, toOwnerId(principal, tenant), roles.join(","), toState(expiresAt, revokedAt, now)];
  return `${toEscaped(cells.join("  "))}\n`;
}

function toState(expiresAt: number | undefined, revokedAt: number | undefined, now: number): string {
  if (revokedAt !== undefined) return `revoked ${new Date(revokedAt).toISOString()}`;
  if (expiresAt === undefined) return "valid";
  return `${expiresAt <= now ? "expired" : "valid until"} ${new Date(expiresAt).toISOString()}`;
}
