import { mutate } from "../../harness/mutation.ts";
import type { Random } from "../../harness/random.ts";
import { converse } from "../mutants/converse.ts";
import { toBytes, type Version, versions } from "./frames.ts";

/** What the broker did with a mutated frame: it sent an ERROR, answered the frame, or closed without an answer. */
export const outcomes = ["ERROR", "answered", "closed"] as const;
type Outcome = (typeof outcomes)[number];

/** What every attack uses. */
export interface Target {
  readonly port: number;
  /** A topic with one event. */
  readonly topic: string;
  /** The eventId of that event. */
  readonly eventId: string;
}

interface ClientFrame {
  readonly command: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The frames that a client sends before its mutated frame, and the commands of the answers that it must get. */
interface State {
  readonly frames: readonly ClientFrame[];
  readonly answers: readonly string[];
}

interface ServerFrame {
  readonly command: string;
  readonly lines: readonly string[];
}

const mutationsMax = 2;

/** The states in which a mutant is sent. Those without a subscription are in the list several times, because they take a fraction of the time. */
function statesOf({ topic }: Target): readonly State[] {
  const begin = { command: "BEGIN", headers: { transaction: "t", receipt: "ready" } };
  const subscribe = { id: "s", destination: topic, ack: "client", receipt: "ready" };
  const replay = { ...subscribe, eventId: "OFFSET_FIRST" };
  const connected = { frames: [], answers: ["CONNECTED"] };
  const begun = { frames: [begin], answers: ["CONNECTED", "RECEIPT"] };
  const subscribed = { frames: [{ command: "SUBSCRIBE", headers: subscribe }], answers: begun.answers };
  const given = { frames: [{ command: "SUBSCRIBE", headers: replay }], answers: [...begun.answers, "MESSAGE"] };
  return [connected, connected, connected, begun, begun, begun, subscribed, given];
}

/** One frame of each kind that a client may send. */
function framesOf({ topic, eventId }: Target): readonly ClientFrame[] {
  const settled = { id: `1-${eventId}~1`, "message-id": eventId, subscription: "s", receipt: "5" };
  return [
    { command: "SEND", headers: { destination: "mutated", "svc-a": "b:c\n", receipt: "1" }, body: "text" },
    { command: "SEND", headers: { destination: "mutated", "content-length": "3", transaction: "t" }, body: "a\0b" },
    { command: "SUBSCRIBE", headers: { id: "1", destination: `${topic},x/#`, ack: "client", "prefetch-count": "5" } },
    { command: "SUBSCRIBE", headers: { id: "2", destination: "+/x", eventId: "OFFSET_FIRST", receipt: "2" } },
    { command: "UNSUBSCRIBE", headers: { id: "s", receipt: "3" } },
    { command: "ACK", headers: settled },
    { command: "NACK", headers: settled },
    { command: "ACK", headers: { ...settled, transaction: "t" } },
    { command: "BEGIN", headers: { transaction: "u", receipt: "6" } },
    { command: "COMMIT", headers: { transaction: "t", receipt: "7" } },
    { command: "ABORT", headers: { transaction: "t" } },
    { command: "DISCONNECT", headers: { receipt: "8" } },
  ];
}

function toHello(version: Version): ClientFrame {
  return { command: "CONNECT", headers: version === "1.0" ? {} : { "accept-version": version, host: "localhost" } };
}

function toMutant(bytes: Buffer, random: Random): Buffer {
  let mutant = bytes;
  for (let left = 1 + random.below(mutationsMax); left > 0 && mutant.length > 0; left -= 1) {
    mutant = mutate(mutant, random, random.pick([0, 10, 13, 58, 92, random.below(256)]));
  }
  return mutant;
}

/** Sends one mutated frame, and nothing after it. @throws Error if the protocol does not allow the broker's answers. */
export async function attack(target: Target, random: Random): Promise<Outcome> {
  const version = random.pick(versions);
  const hello = toHello(version);
  const isFirst = random.below(20) === 0; // the CONNECT itself is mutated
  const state = isFirst ? { frames: [], answers: [] } : random.pick(statesOf(target));
  const frame = isFirst ? hello : random.pick(framesOf(target));
  const before = isFirst ? [] : [hello, ...state.frames].map((one) => toBytes(one, version));
  const mutant = toMutant(toBytes(frame, version), random);
  try {
    const answers = await talk(target.port, { before, mutant, expected: state.answers });
    return toOutcome(answers.slice(state.answers.length));
  } catch (error) {
    throw new Error(`STOMP ${version} after ${state.answers.join()}: ${JSON.stringify(mutant.toString("latin1"))}`, {
      cause: error,
    });
  }
}

interface Conversation {
  readonly before: readonly Buffer[];
  readonly mutant: Buffer;
  /** Commands of the answers to `before`. The client waits only for a MESSAGE before it sends the mutant: other answers come in order anyway. */
  readonly expected: readonly string[];
}

/** Returns all frames that came until the broker closed. */
async function talk(port: number, { before, mutant, expected }: Conversation): Promise<readonly ServerFrame[]> {
  const isReached = (bytes: Buffer): boolean => readAnswers(bytes).length >= expected.length;
  const received = await converse(port, [
    { bytes: Buffer.concat(before), isDone: expected.includes("MESSAGE") ? isReached : undefined },
    { bytes: mutant },
  ]);
  const answers = readAnswers(received);
  const commands = answers.slice(0, expected.length).map(({ command }) => command);
  if (commands.join() !== expected.join()) throw new Error(`the state was not reached: ${received.toString("latin1")}`);
  return answers;
}

/** Reads the whole frames. Ignores an unfinished frame at the end. @throws Error if a frame is malformed. */
function readAnswers(bytes: Buffer): readonly ServerFrame[] {
  const frames: ServerFrame[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] === 0x0a) {
      at += 1;
      continue;
    }
    const end = bytes.indexOf("\n\n", at);
    if (end < 0) break;
    const [command = "", ...lines] = bytes.toString("latin1", at, end).split("\n");
    const isLegal = /^(CONNECTED|MESSAGE|RECEIPT|ERROR)$/.test(command) && lines.every((line) => /^[^:]+:/.test(line));
    if (!isLegal) throw new Error(`not a server's frame: ${bytes.toString("latin1", at, end)}`);
    const length = Number(
      lines.find((line) => line.startsWith("content-length:"))?.slice("content-length:".length) ?? 0,
    );
    const stop = end + 2 + length;
    if (stop >= bytes.length) break;
    if (bytes[stop] !== 0) throw new Error(`no NUL where a ${command} ends`);
    frames.push({ command, lines });
    at = stop + 1;
  }
  return frames;
}

/** Returns what the broker did, by its answers to the mutant. @throws Error if an ERROR is not the last frame, or lacks its message or code. */
function toOutcome(answers: readonly ServerFrame[]): Outcome {
  const errors = answers.filter(({ command }) => command === "ERROR");
  const last = answers.at(-1);
  if (last === undefined) return "closed";
  if (errors.length === 0) return "answered";
  const saysWhy = [/^message:./, /^code:\d{6}$/].every((header) => last.lines.some((line) => header.test(line)));
  if (errors.length > 1 || last.command !== "ERROR" || !saysWhy) throw new Error(JSON.stringify(answers));
  return "ERROR";
}
