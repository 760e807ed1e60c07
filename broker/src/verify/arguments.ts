import { findBytes } from "@stele/eth";
import { quote } from "@stele/wire";
import { Contexts } from "../cli/contexts.ts";
import { findBroker } from "../cli/find-broker.ts";
import type { CliIo } from "../cli/io.ts";
import { parseTopicName, type TopicName } from "../domain/topic-name.ts";
import { type OutputFormat, takeFormat } from "../lib/output-format.ts";
import { reasonOf, Unverifiable } from "./unverifiable.ts";

/** Servers to ask, and the format of the answer. */
export interface CommonArguments {
  /** Base URL of the broker. */
  readonly broker: string;
  /** Base URL of the broker's pages for operators, which include its own view of the chain. */
  readonly operators: string;
  /** Key or token that the broker asks for. */
  readonly key: (() => string) | undefined;
  /** The trusted node; undefined for the broker's own view of the chain. */
  readonly rpc: string | undefined;
  readonly group: string | undefined;
  /** The trusted registry; undefined for a remembered one. */
  readonly registry: string | undefined;
  /** Whether to remember the chain's registry, and trust it on first use. */
  readonly remember: boolean;
  /** File of the remembered registries; undefined for the default file in the user's configuration folder. */
  readonly knownRegistries: string | undefined;
  /** Accounts that may have published; undefined for anyone. */
  readonly publishers: readonly string[] | undefined;
  readonly format: OutputFormat;
}

export interface EventArguments extends CommonArguments {
  readonly kind: "event";
  /** An eventId, or the path of a file with a proof. */
  readonly eventIdOrFile: string;
  /** The trusted block hash, if known; then no node is asked. */
  readonly blockHash: string | undefined;
}

export interface TopicArguments extends CommonArguments {
  readonly kind: "topic";
  readonly topic: TopicName;
  readonly from: number;
  /** Undefined for the newest event on the chain. */
  readonly to: number | undefined;
  /** First block to read; it must not be after the block of the topic's first event. */
  readonly fromBlock: number;
}

export type VerifyArguments = EventArguments | TopicArguments | { readonly kind: "help" };

const hashBytes = 32;
const addressBytes = 20;
const valueFlags = [
  "--rpc",
  "--broker",
  "--group",
  "--admin-url",
  "--key-file",
  "--context",
  "--registry",
  "--block-hash",
  "--topic",
  "--from",
  "--to",
  "--from-block",
  "--known-registries",
  "--publisher",
];
/** Names of these flags in the other commands, accepted here too. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["--url", "--broker"],
  ["-u", "--broker"],
  ["-g", "--group"],
  ["-c", "--context"],
]);
/** Flags that may be repeated. */
const listFlags = ["--publisher"];
/** Flags without a value. */
const switches = ["--json", "--remember"];

/** The user who runs the command. */
export type User = Pick<CliIo, "env">;

/** Reads the arguments of `stele verify`, and finds the broker as every other command does. @throws Unverifiable for wrong usage. */
export function parseArguments(argv: readonly string[], user: User): VerifyArguments {
  if (argv.includes("--help") || argv.includes("-h")) return { kind: "help" };
  const { format, words: rest } = usable(() => takeFormat(argv));
  const { values, words, given } = readFlags(rest);
  const common = {
    ...brokerOf(values, user),
    rpc: mapped(values.get("--rpc"), (text) => parseUrl(text, "--rpc")),
    registry: mapped(values.get("--registry"), (text) => parseHex(text, { bytes: addressBytes, flag: "--registry" })),
    remember: given.has("--remember"),
    knownRegistries: values.get("--known-registries"),
    publishers: mapped(values.get("--publisher"), parseAddresses),
    format: given.has("--json") ? "ndjson" : format,
  };
  return values.has("--topic") ? toTopicArguments(values, words, common) : toEventArguments(values, words, common);
}

/** Returns what `read` returns. @throws Unverifiable instead of any error of `read`. */
function usable<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw new Unverifiable(reasonOf(error));
  }
}

type Values = ReadonlyMap<string, string>;

function brokerOf(values: Values, { env }: User): Pick<CommonArguments, "broker" | "operators" | "group" | "key"> {
  const flags = {
    url: values.get("--broker"),
    adminUrl: values.get("--admin-url"),
    group: values.get("--group"),
    keyFile: values.get("--key-file"),
    context: values.get("--context"),
  };
  if (flags.url !== undefined && flags.context !== undefined) {
    throw new Unverifiable("--context names a broker already: leave --broker out");
  }
  const { url, adminUrl = url, groupId, key } = usable(() => findBroker(flags, new Contexts({ env }), env));
  return {
    broker: url.replace(/\/+$/, ""),
    operators: adminUrl.replace(/\/+$/, ""),
    group: groupId,
    key,
  };
}

function toEventArguments(values: Values, words: readonly string[], common: CommonArguments): EventArguments {
  const [eventIdOrFile, ...more] = words;
  if (eventIdOrFile === undefined || more.length > 0)
    throw new Unverifiable("give one eventId or one file, or --topic");
  refuse(values, ["--from", "--to", "--from-block"], "is for --topic");
  const blockHash = mapped(values.get("--block-hash"), (text) =>
    parseHex(text, { bytes: hashBytes, flag: "--block-hash" }),
  );
  if (blockHash !== undefined) refuseWithoutNode(common);
  return { kind: "event", ...common, eventIdOrFile, blockHash };
}

function toTopicArguments(values: Values, words: readonly string[], common: CommonArguments): TopicArguments {
  if (words.length > 0) throw new Unverifiable(`${quote(words[0])} is not expected with --topic`);
  refuse(values, ["--block-hash"], "is for an event");
  const from = parseNumber(values.get("--from") ?? "1", { flag: "--from", least: 1 });
  const to = mapped(values.get("--to"), (text) => parseNumber(text, { flag: "--to", least: from }));
  const fromBlock = parseNumber(values.get("--from-block") ?? "0", { flag: "--from-block", least: 0 });
  return { kind: "topic", ...common, topic: parseTopic(values.get("--topic") ?? ""), from, to, fromBlock };
}

/** Refuses arguments that need a node. The command remembers each registry for a chain, and only a node says which chain that is. */
function refuseWithoutNode({ registry, remember }: CommonArguments): void {
  if (registry === undefined)
    throw new Unverifiable("--block-hash needs --registry: with --block-hash no node is asked which chain it is");
  if (remember)
    throw new Unverifiable("--remember needs a node, and with --block-hash none is asked: leave out one of them");
}

interface Flags {
  readonly values: Values;
  readonly words: readonly string[];
  /** The switches that are set. */
  readonly given: ReadonlySet<string>;
}

function readFlags(argv: readonly string[]): Flags {
  const values = new Map<string, string>();
  const words: string[] = [];
  const given = new Set<string>();
  for (let at = 0; at < argv.length; at += 1) {
    const [name, inline] = splitAtEquals(argv[at] ?? "");
    const flag = otherNames.get(name) ?? name;
    if (switches.includes(flag) && inline === undefined) given.add(flag);
    else if (!flag.startsWith("-")) words.push(argv[at] ?? "");
    else {
      if (inline === undefined) at += 1;
      setValue(values, flag, inline ?? argv[at]);
    }
  }
  return { values, words, given };
}

function setValue(values: Map<string, string>, flag: string, value: string | undefined): void {
  if (!valueFlags.includes(flag)) throw new Unverifiable(`${quote(flag)} is not a known flag; see stele verify --help`);
  const before = values.get(flag);
  if (before !== undefined && !listFlags.includes(flag)) throw new Unverifiable(`${flag} is given more than once`);
  if (value === undefined || value.startsWith("--")) throw new Unverifiable(`${flag} needs a value`);
  values.set(flag, before === undefined ? value : `${before},${value}`);
}

function parseAddresses(text: string): readonly string[] {
  return text.split(",").map((address) => parseHex(address.trim(), { bytes: addressBytes, flag: "--publisher" }));
}

function splitAtEquals(argument: string): readonly [flag: string, inline: string | undefined] {
  const index = argument.startsWith("--") ? argument.indexOf("=") : -1;
  return index < 0 ? [argument, undefined] : [argument.slice(0, index), argument.slice(index + 1)];
}

function mapped<Result>(text: string | undefined, parse: (text: string) => Result): Result | undefined {
  return text === undefined ? undefined : parse(text);
}

function refuse(values: Values, flags: readonly string[], why: string): void {
  const given = flags.find((flag) => values.has(flag));
  if (given !== undefined) throw new Unverifiable(`${given} ${why}`);
}

function parseUrl(text: string, flag: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new Unverifiable(`${flag}: ${text.includes("@") ? "this" : quote(text)} is not an http(s) URL`); // It may have a password.
  return text;
}

function parseHex(text: string, { bytes, flag }: { readonly bytes: number; readonly flag: string }): string {
  const lower = text.toLowerCase();
  if (findBytes(lower)?.length === bytes) return lower;
  throw new Unverifiable(`${flag}: ${quote(text)} is not 0x followed by ${2 * bytes} hex digits`);
}

function parseNumber(text: string, { flag, least }: { readonly flag: string; readonly least: number }): number {
  const value = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
  throw new Unverifiable(`${flag}: ${quote(text)} is not an integer from ${least}`);
}

function parseTopic(text: string): TopicName {
  try {
    return parseTopicName(text);
  } catch (error) {
    throw new Unverifiable(`--topic: ${error instanceof Error ? error.message : String(error)}`);
  }
}
