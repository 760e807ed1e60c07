import { quote } from "@stele/wire";
import { z } from "zod";
import { groupIdCharactersMax } from "../domain/group-id.ts";
import { endpointName } from "../lib/endpoint-name.ts";
import { choice, integer, optional, type Setting, type SettingsOf, type SettingsTable, text } from "./setting.ts";

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const mebibyte = 2 ** 20;
/** Maximum number of endpoints of one group. */
export const endpointsMax = 8;
/** Maximum number of additional accounts that may write to one group's topics. */
const writersMax = 64;
/** Maximum number of later blocks that `finality` may require. */
const confirmationsMax = 10_000;
const section = "A group";

/** When a block of the group counts as final. */
export type FinalitySetting = "latest" | "safe" | "finalized" | number;

/** Source of the key that signs a group's transactions. */
export type SignerSource =
  | { readonly privateKeyFile: string }
  | { readonly privateKeyEnv: string }
  | { readonly keystoreFile: string; readonly passwordFile: string }
  | { readonly keystoreFile: string; readonly passwordEnv: string };

const path = z
  .string()
  .min(1)
  .regex(/^[^\0]*$/);
// Shorter than a key in hexadecimal, so that a key written here by mistake is refused as a name, and never shown.
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,61}$/);
const signer: z.ZodType<SignerSource> = z.union([
  z.strictObject({ privateKeyFile: path }),
  z.strictObject({ privateKeyEnv: variable }),
  z.strictObject({ keystoreFile: path, passwordFile: path }),
  z.strictObject({ keystoreFile: path, passwordEnv: variable }),
]);

const endpointRule = "http(s)://…, ws(s)://… or ipc:/path";
const endpointsRule = `"embedded" or a list of 1 to ${endpointsMax} different addresses, each ${endpointRule}`;

/** Every field of an entry of `groups`. derived.ts computes omitted values that have no default here. */
export const groupFields = {
  id: text({
    section,
    description: "The groupId that clients name; required.",
    default: "",
    defaultText: "none",
    rule: `1 to ${groupIdCharactersMax} printable ASCII characters without a space`,
    check: (value) => /^[\x21-\x7e]{1,64}$/.test(value),
  }),
  endpoints: structured<"embedded" | readonly string[]>({
    description:
      '`"embedded"`, for the chain inside this process, or a list of JSON-RPC endpoints of one chain, in order of preference. Required.',
    default: "embedded",
    defaultText: "none",
    schema: z.unknown().transform((value, context) => {
      for (const message of findEndpointProblems(value)) context.addIssue({ code: "custom", message });
      return value as "embedded" | readonly string[]; // For any other value, there is an issue.
    }),
    rule: endpointsRule,
    usesSchemaMessages: true,
    show: (value) => (Array.isArray(value) ? value.map(showEndpoint) : showEndpoint(value)),
  }),
  signer: structured<SignerSource | undefined>({
    description:
      'Source of the signing key: `{"privateKeyFile": path}`, `{"privateKeyEnv": variable}`, or a keystore in JSON, version 3: `{"keystoreFile": path, "passwordFile": path}` or `{"keystoreFile": path, "passwordEnv": variable}`.',
    default: undefined,
    defaultText: "a key created in the data folder, `signer-<id>.key`",
    schema: signer,
    rule: "an object with privateKeyFile, or privateKeyEnv, or keystoreFile and one of passwordFile and passwordEnv",
    show: showKeys,
  }),
  registry: text<string | undefined>({
    section,
    description:
      "Address of the topic registry on the chain, or `deploy` for a new one. Organisations that share topics use the same address.",
    default: undefined,
    defaultText: "the one recorded at an earlier start, else one that this signer deployed, else a new one",
    rule: '"deploy" or an address: 0x and 40 hexadecimal digits',
    check: (value) => /^(deploy|0x[0-9a-fA-F]{40})$/.test(value),
  }),
  topicWriters: choice(["everyone", "own"], {
    section,
    description:
      "Who may write to the topics that this group opens: `everyone` with an account on the chain, or the group's `own` signers only; see [groups.md](groups.md#topics-that-only-your-brokers-write-to).",
    default: "everyone",
  }),
  writers: structured<readonly string[]>({
    description:
      "Additional accounts that may write if `topicWriters` is `own`, for example of another organisation or of an operator.",
    default: [],
    defaultText: "none",
    schema: z.array(z.string().regex(/^0x[0-9a-fA-F]{40}$/)).max(writersMax),
    rule: `a list of at most ${writersMax} addresses, each 0x and 40 hexadecimal digits`,
  }),
  chainId: optional(
    integer({
      section,
      description: "Required chain id; the broker does not use endpoints with another chain id.",
      default: 0,
      min: 1,
      max: Number.MAX_SAFE_INTEGER,
    }),
    "the chain id found at the first start",
  ),
  fees: choice(["auto", "eip1559", "legacy", "zero"], {
    section,
    description: "How to price transactions; `auto` follows the chain. `zero` is for chains with free gas.",
    default: "auto",
  }),
  feeMaxGwei: structured<number | undefined>({
    description:
      "Maximum price for one unit of gas, in gwei; while the market price is higher, transactions wait. Without it, the fee of a waiting transaction rises to at most 16 times the market price.",
    default: undefined,
    defaultText: "no limit",
    schema: z.number().positive().max(1_000_000_000),
    rule: "a number above 0, at most 1000000000",
  }),
  finality: structured<FinalitySetting>({
    description:
      "When a block is final. `latest`: at once. A number: once this many blocks are on top of it. `safe` or `finalized`: when the chain says so.",
    default: "latest",
    schema: z.union([z.enum(["latest", "safe", "finalized"]), z.int().min(1).max(confirmationsMax)]),
    rule: `latest, safe, finalized or an integer from 1 to ${confirmationsMax}`,
  }),
  transactionEventsMax: optional(
    integer({
      section,
      description: "Maximum number of events in one transaction.",
      default: 0,
      unit: "events",
      min: 1,
      max: 65_536,
    }),
    "the setting of this name",
  ),
  transactionBytesMax: optional(
    integer({
      section,
      description: "Maximum size of the encoded events in one transaction.",
      default: 0,
      unit: "bytes",
      min: 1024,
      max: 16 * mebibyte,
    }),
    "the setting of this name",
  ),
  transactionsInFlightMax: optional(
    integer({
      section,
      description: "Maximum number of transactions in flight.",
      default: 0,
      unit: "transactions",
      min: 1,
      max: 64,
    }),
    "16; embedded, the setting of this name",
  ),
  publishTimeoutMs: integer({
    section,
    description: "How long a publish waits for its transaction. After that the broker answers with status TIMEOUT.",
    default: 30 * secondMs,
    unit: "milliseconds",
    min: 100,
    max: 60 * minuteMs,
  }),
  storeRetentionMs: optional(
    integer({
      section,
      description: "How long the store keeps its copy of this group's events.",
      default: 0,
      unit: "milliseconds",
      min: 0,
      max: 10 * 365 * 24 * 60 * minuteMs,
    }),
    "the setting of this name",
  ),
  feeBumpAfterMs: integer({
    section,
    description: "How long a transaction stays unmined before the broker sends it again with a higher fee.",
    default: 30 * secondMs,
    unit: "milliseconds",
    min: 100,
    max: 60 * minuteMs,
  }),
  pollMs: integer({
    section,
    description: "Interval between polls for a new block, at endpoints that cannot notify.",
    default: secondMs,
    unit: "milliseconds",
    min: 10,
    max: minuteMs,
  }),
} as const satisfies SettingsTable;

/** One entry of `groups`, with its own defaults. */
export type GroupEntry = SettingsOf<typeof groupFields>;

type StructuredOptions<Value> = Pick<
  Setting<Value>,
  "description" | "default" | "defaultText" | "schema" | "rule" | "show" | "usesSchemaMessages"
>;

function structured<Value>(options: StructuredOptions<Value>): Setting<Value> {
  return { ...options, section, decode: (text) => text };
}

/** Reports each wrong entry instead of the whole list. */
function findEndpointProblems(value: unknown): readonly string[] {
  if (value === "embedded") return [];
  if (!Array.isArray(value)) return [`${quote(showEndpoint(value))} is not ${endpointsRule}`];
  if (value.length === 0 || value.length > endpointsMax) return [`a list of ${value.length} is not ${endpointsRule}`];
  return value.flatMap((entry: unknown, index) => {
    const first = value.indexOf(entry);
    const shown = `entry ${index + 1}, ${quote(showEndpoint(entry))},`;
    if (!isEndpoint(entry)) return [`${shown} is not ${endpointRule}`];
    return first === index ? [] : [`${shown} is the same as entry ${first + 1}`];
  });
}

function isEndpoint(value: unknown): boolean {
  if (typeof value !== "string") return false;
  if (value.startsWith("ipc:")) return value.length > "ipc:".length && !value.includes("\0");
  return /^(https?|wss?):\/\/[^#]+$/.test(value) && URL.canParse(value);
}

function showEndpoint(value: unknown): unknown {
  return typeof value === "string" && value !== "embedded" ? endpointName(value) : value;
}

/** Shows the names of fields only: somebody may have written a key in place of its source. */
function showKeys(value: unknown): unknown {
  return typeof value === "object" && value !== null ? Object.keys(value) : typeof value;
}
