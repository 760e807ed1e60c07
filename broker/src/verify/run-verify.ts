import { RpcFailure } from "../ledger/evm/endpoint/rpc-failure.ts";
import { type EventArguments, parseArguments, type TopicArguments } from "./arguments.ts";
import { ChainClient } from "./chain-client.ts";
import { KnownRegistries, knownRegistriesFile } from "./known-registries.ts";
import { toPrintable } from "../lib/printable.ts";
import { type PinnedBy, RegistryPin } from "./registry-pin.ts";
import { renderEventReport, renderTopicReport } from "./report.ts";
import { reasonOf, Unverifiable } from "./unverifiable.ts";
import { verifyEvent } from "./verify-event.ts";
import { verifyTopic } from "./verify-topic.ts";

/** Output of the command, and its exit code: 0 verified, 1 refuted, 2 neither. */
export interface VerifyOutcome {
  readonly exitCode: 0 | 1 | 2;
  readonly output: string;
  /** For standard error. */
  readonly problem: string;
}

const usage = `Usage: stele verify <eventId|file> [flags]
       stele verify --topic TOPIC [--from 1] [--to N] [flags]

The first form verifies that one event is on the chain, by the broker's proof or a proof in a file. The second form compares a topic's events
on the chain with the broker's: it finds missing, different and extra ones.

  --rpc URL         the trusted chain node (default: the broker's own view of its chain)
  --registry ADDR   the trusted topic registry (default: the remembered one of this chain; without one, exit code 2)
  --remember        remember the registry for this chain; without --registry, trust it on first use, with a warning
  --known-registries FILE
                    file of remembered registries (default: stele/known-registries.json in $XDG_CONFIG_HOME or ~/.config)
  --publisher ADDR  an account that may publish; repeat it or separate several by commas (default: anyone; the answer names it)
  --broker URL      base URL of the broker; --url is the same (default: $STELE_URL, else that of the context, else http://127.0.0.1:8080)
  --admin-url URL   base URL of the broker's pages for operators, if they have their own port; it also serves the chain
  --group ID        group of the event or topic
  --key-file FILE   file with the key or token that the broker asks for (default: that of the context, else $STELE_KEY)
  --context NAME    context to use instead of the current one; see stele context
  --block-hash HASH trusted hash of the event's block, if known: then no node is asked
  --from-block N    block of the topic's first event, or an earlier one (default 0)
  -o, --output FORM table (default), json or ndjson
  --json            the same as -o ndjson
  --help, -h        print this text

A group on a chain outside the broker needs --rpc.

Examples:
  stele verify 2cf24dba-59-1124 --remember
  stele verify proof.json --rpc https://node.example.org --registry 0x5fbdb2315678afecb367f032d93f642f64180aa3
  stele verify --topic orders/new --from 1000 -o json

Exit codes: 0 verified; 1 refuted; 2 unknown: wrong usage, no pinned registry or a changed one, a server that does not answer, the wrong chain,
or events that the broker has not read yet.
`;

export interface VerifyEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Runs `stele verify` with the arguments after that word. Never throws: any error gives exit code 2, because it refutes nothing. */
export async function runVerify(argv: readonly string[], { env }: VerifyEnvironment): Promise<VerifyOutcome> {
  try {
    const options = parseArguments(argv, { env });
    if (options.kind === "help") return { exitCode: 0, output: usage, problem: "" };
    const known = new KnownRegistries(options.knownRegistries ?? knownRegistriesFile(env));
    return await verify(options, new RegistryPin({ ...options, known }));
  } catch (error) {
    const isForeseen = error instanceof Unverifiable || error instanceof RpcFailure;
    const reason = isForeseen ? reasonOf(error) : `cannot read an answer: ${reasonOf(error)}`;
    return { exitCode: 2, output: "", problem: toProblem(reason) };
  }
}

async function verify(options: EventArguments | TopicArguments, pin: RegistryPin): Promise<VerifyOutcome> {
  const trust = { format: options.format, hasOwnNode: options.rpc !== undefined };
  if (options.kind === "topic") {
    const report = await verifyTopic(options, pin);
    const output = renderTopicReport(report, trust);
    return report.status === "refuted" ? refuted(output) : verified(output, { ...report, options, pin });
  }
  const report = await verifyEvent(options, pin);
  const output = renderEventReport(report, trust);
  if (report.status === "refuted") return refuted(output);
  return verified(output, { registry: report.event.registry, pinnedBy: report.pinnedBy, options, pin });
}

function refuted(output: string): VerifyOutcome {
  return { exitCode: 1, output, problem: "" };
}

interface Trusted {
  readonly registry: string;
  readonly pinnedBy: PinnedBy;
  readonly options: EventArguments | TopicArguments;
  readonly pin: RegistryPin;
}

/** Remembers a registry only after a successful verification. */
async function verified(output: string, { registry, pinnedBy, options, pin }: Trusted): Promise<VerifyOutcome> {
  const warning = await pin.keep(registry, { chain: new ChainClient(options), pinnedBy });
  return { exitCode: 0, output, problem: warning === "" ? "" : toProblem(warning) };
}

function toProblem(text: string): string {
  return `stele verify: ${toPrintable(text)}\n`;
}
