import { RpcFailure } from "../ledger/evm/rpc-failure.ts";
import { parseArguments } from "./arguments.ts";
import { renderEventReport, renderTopicReport } from "./report.ts";
import { reasonOf, Unverifiable } from "./unverifiable.ts";
import { verifyEvent } from "./verify-event.ts";
import { verifyTopic } from "./verify-topic.ts";

/** What the command has to say, and its exit code: 0 verified, 1 refuted, 2 neither could be found out. */
export interface VerifyOutcome {
  readonly exitCode: 0 | 1 | 2;
  readonly output: string;
  /** For the standard error. */
  readonly problem: string;
}

const usage = `Usage: stele verify <eventId|file> [flags]
       stele verify --topic TOPIC [--from 1] [--to N] [flags]

The first verifies that one event is on the chain: the broker gives its proof, or a file holds it. The second compares a topic's events
on the chain with those that the broker gives: it finds what is missing, different or extra.

  --rpc URL         the node that is trusted (default: the broker's own view of its chain)
  --registry ADDR   the topic registry that is trusted (default: any; the answer names it)
  --broker URL      base URL of the broker (default http://127.0.0.1:8080)
  --group ID        group of the event or topic
  --block-hash HASH the event's block, where it is known from elsewhere: no node is asked
  --from-block N    block of the topic's first event, or one before it (default 0)
  --json            answer in JSON
  --help, -h        print this text

A group on a chain outside the broker needs --rpc.

Exit codes: 0 verified; 1 refuted; 2 it cannot be told: wrong usage, somebody who has to be asked gives no answer, or another chain was asked.
`;

/** Runs `stele verify` with the arguments after that word. It never throws for what it meets. */
export async function runVerify(argv: readonly string[]): Promise<VerifyOutcome> {
  try {
    const options = parseArguments(argv);
    if (options.kind === "help") return { exitCode: 0, output: usage, problem: "" };
    const { json, rpc, registry } = options;
    const trust = { json, hasOwnNode: rpc !== undefined, hasOwnRegistry: registry !== undefined };
    if (options.kind === "event") {
      const report = await verifyEvent(options);
      return toOutcome(report.status, renderEventReport(report, trust));
    }
    const report = await verifyTopic(options);
    return toOutcome(report.status, renderTopicReport(report, trust));
  } catch (error) {
    if (!(error instanceof Unverifiable || error instanceof RpcFailure)) throw error;
    return { exitCode: 2, output: "", problem: `stele verify: ${reasonOf(error)}\n` };
  }
}

function toOutcome(status: "verified" | "refuted", output: string): VerifyOutcome {
  return { exitCode: status === "verified" ? 0 : 1, output, problem: "" };
}
