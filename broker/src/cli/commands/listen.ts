import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ReceivedEvent } from "@stele/client";
import type { Command } from "commander";
import { bodyChunks } from "../../lib/body-chunks.ts";
import { signMessage } from "../../lib/webhook-signature.ts";
import { describeNetworkFailure, isBlockedPort } from "../../lib/network-failure.ts";
import { checkHttpUrl } from "../http-url.ts";
import { type CliIo, CommandFailed, UsageError } from "../io.ts";
import { first, openTail, sinceOption, startOf } from "../open-tail.ts";
import type { Column } from "../output.ts";
import { parseCount } from "../parse.ts";
import { withTimeLimit } from "../time-limit.ts";
import { define } from "./define.ts";

interface ListenFlags {
  readonly forward: string;
  readonly secretFile?: string;
  readonly after?: string;
  readonly since?: number;
  readonly count?: number;
}

/** The result of one callback. */
interface Forwarded {
  readonly eventId: string;
  readonly topic: string;
  readonly status?: number;
  /** Why no answer came. */
  readonly error?: string;
  readonly ms: number;
}

/** Time limit for a receiver's answer, in milliseconds: the default of a broker's `callbackTimeoutMs`. */
const answerTimeoutMs = 15_000;
/** Maximum number of bytes to read of a receiver's answer, as a broker does. */
const answerBytesMax = 65_536;
const secretBytes = 24;

const columns: readonly Column<Forwarded>[] = [
  { title: "EVENT", of: ({ eventId }) => eventId, width: 20 },
  { title: "TOPIC", of: ({ topic }) => topic, width: 20 },
  { title: "ANSWER", of: ({ status, error }) => status ?? error, width: 6 },
  { title: "MS", of: ({ ms }) => ms },
];

export function defineListen(program: Command, io: CliIo): void {
  define<ListenFlags>(program, io, {
    usage: "listen <topics...>",
    summary:
      "Calls a receiver for each event, signed and in order like a broker's callbacks, but makes only one attempt.",
    examples: ["stele listen 'orders/#' --forward http://localhost:3000/hook"],
    flags: (command) =>
      command
        .requiredOption("--forward <url>", "address of the receiver")
        .option("--secret-file <file>", "file with the secret that signs the callbacks (default: a random secret)")
        .option("--after <place>", "start after an eventId, OFFSET_FIRST, or a time (ISO 8601)")
        .addOption(sinceOption())
        .option("-n, --count <number>", "end after this many events", parseCount),
    run: async (session, { words, flags }) => {
      const { output, signal } = session;
      const { forward, secretFile, after, since, count } = flags;
      checkHttpUrl(forward, "--forward");
      const secret =
        secretFile === undefined ? `whsec_${randomBytes(secretBytes).toString("base64")}` : readSecret(secretFile);
      if (secretFile === undefined) output.note(`the secret is ${secret}`);
      const subscriptionId = randomUUID();
      const events = await openTail(session, {
        topics: words,
        after: startOf({ since, after }),
      });
      let failed = 0;
      const forwarded = async function* (): AsyncGenerator<Forwarded> {
        for await (const event of first(events, count)) {
          const callback = await call({ forward, secret, subscriptionId, signal }, event);
          if (!isAccepted(callback)) failed += 1;
          yield callback;
        }
      };
      const called = await output.rows(forwarded(), columns, { isLive: true });
      if (failed > 0) throw new CommandFailed(`${failed} of ${called} callbacks were not accepted`);
    },
  });
}

interface Receiver {
  readonly forward: string;
  readonly secret: string;
  readonly subscriptionId: string;
  /** Ends a call, since a receiver may hang. */
  readonly signal: AbortSignal;
}

const toTimeout = (): DOMException => new DOMException("", "TimeoutError");

/** Sends the request that docs/callbacks.md describes. Never throws. */
async function call({ forward, secret, subscriptionId, signal }: Receiver, event: ReceivedEvent): Promise<Forwarded> {
  const body = Buffer.from(JSON.stringify({ subscriptionId, event }));
  const timestampSeconds = Math.floor(Date.now() / 1000);
  const headers = {
    "content-type": "application/json",
    "webhook-id": event.eventId,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": signMessage(secret, { id: event.eventId, timestampSeconds, body }),
  };
  const { eventId, topic } = event;
  const begunAt = performance.now();
  const ms = (): number => Math.round(performance.now() - begunAt);
  try {
    const status = await withTimeLimit({ signal, ms: answerTimeoutMs, toReason: toTimeout }, async (ending) => {
      const answer = await fetch(forward, { method: "POST", headers, body, redirect: "manual", signal: ending });
      await readToLimit(answer, ending);
      return answer.status;
    });
    return { eventId, topic, status, ms: ms() };
  } catch (error) {
    return { eventId, topic, error: describeFailure(error), ms: ms() };
  }
}

/** Reads a body up to the limit, as a broker does. If the answer breaks off before, the callback fails. */
async function readToLimit(answer: Response, signal: AbortSignal): Promise<void> {
  let bytes = 0;
  for await (const chunk of bodyChunks(answer, signal)) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) return;
  }
}

/** Whether a broker would take the status for a success (2xx). */
function isAccepted({ status = 0 }: Forwarded): boolean {
  return status >= 200 && status < 300;
}

/** Why no answer came. `fetch` puts a network failure into the cause of its own error. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return "no answer";
  if (error.name === "AbortError") return "the command was ended before the answer";
  if (error.name === "TimeoutError") return `no answer in ${answerTimeoutMs / 1_000} s`;
  if (isBlockedPort(error.cause)) return "callbacks may not reach that port"; // The broker refuses it at subscribe.
  return describeNetworkFailure(error.cause instanceof Error ? error.cause : error);
}

function readSecret(file: string): string {
  const secret = readText(file).trim();
  if (secret === "") throw new UsageError(`--secret-file: ${file} is empty`);
  return secret;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new UsageError(`--secret-file: ${file} cannot be read`);
  }
}
