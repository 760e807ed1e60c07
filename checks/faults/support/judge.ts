import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CallFailed, Client } from "../../harness/client.ts";
import type { Promised } from "./acknowledged.ts";
import { type LocalBroker, type LogLine, startLocalBroker } from "./local-broker.ts";
import { expectDelivered, expectProven, expectReady, findHeld, type Held, NotReady, Wrong } from "./reading.ts";
import { expectSessions } from "./promised-session.ts";
import { placeOf } from "./replay.ts";

/** The result of starting a broker on a data folder after a fault. */
export type Verdict =
  /** Everything is there, and the log names no damage. */
  | "no effect"
  /** Everything is there, and the log names the damage. */
  | "healed"
  /** The start failed with a reason, and changed nothing. */
  | "refused"
  /** The broker ran, and then failed with a reason. */
  | "ended"
  /** The broker runs, is not ready, and says why. */
  | "not ready"
  /** The broker has a whole, earlier state of the chain. The fault excuses that. */
  | "earlier"
  /** The broker began a new chain and logged it. The fault excuses that. */
  | "anew"
  /** Everything is there except some proofs. The refusal and health say that the chain is damaged. */
  | "unproven"
  /** Something that must never happen. */
  | `wrong: ${string}`;

export interface Judged {
  readonly verdict: Verdict;
  /** The broker's message or log, for the report. */
  readonly said: string;
}

/** The losses that a fault excuses. */
export interface Excuses {
  /** The end of the chain may be missing: chain, head file and store are all from an earlier time. */
  readonly mayBeEarlier: boolean;
  /** A new chain may begin: chain, head file and store are all gone. */
  readonly mayBeginAnew: boolean;
  readonly mayForgetSubscriptions: boolean;
  /** Blocks of the chain may be damaged. */
  readonly isChainHit: boolean;
  /** Events may be damaged in the store and the chain at once. */
  readonly mayLoseBoth: boolean;
}

export const noExcuses: Excuses = {
  mayBeEarlier: false,
  mayBeginAnew: false,
  mayForgetSubscriptions: false,
  mayLoseBoth: false,
  isChainHit: false,
};

const endTimeoutMs = 2_000;
/** What is damaged: each message must name a file or a subscription. */
const subject = /(chain|store)\.sqlite|signer\.key|the chain's file|subscription [0-9a-f-]{36}/;
/** Paths of folders, whose names may contain any word. */
const folder = /\/\S*\//g;
/** What to do: each message must name a remedy, outside of paths. */
const remedy = /\b(restore|repair|delete|move|start again|check|unsubscribe)\b/i;

/** Starts a broker on the folder, and compares all its answers with what it had promised. Allows the losses that `excuses` names. */
export async function judge(dataDir: string, promised: Promised, excuses = noExcuses): Promise<Judged> {
  const before = digestOf(dataDir);
  const log: LogLine[] = [];
  let broker: LocalBroker;
  try {
    broker = await startLocalBroker({ dataDir, log });
  } catch (error) {
    return judgeRefusal(error, { dataDir, before });
  }
  try {
    await using client = new Client(broker.url);
    const reading = readEverything({ client, broker, log }, promised, excuses);
    const failed = broker.failure.then((error) => ({ failure: error }));
    const first = await Promise.race([reading, failed]).catch(async (error: unknown) => {
      const failure = await failureOf(broker);
      return failure === undefined ? judgeError(error) : { failure };
    });
    reading.catch(() => {});
    if ("failure" in first) return judgeMessage("ended", first.failure.message);
    return judgeLog(first, log);
  } finally {
    await broker.stop().catch(() => {}); // Damaged files may refuse the last write too.
  }
}

interface Running {
  readonly client: Client;
  readonly broker: LocalBroker;
  readonly log: readonly LogLine[];
}

/** Reads and checks everything. Begins with getEvent: on an earlier chain, an event that this check publishes may get the eventId of a lost event. */
async function readEverything(running: Running, promised: Promised, excuses: Excuses): Promise<Judged> {
  await expectReady(running.client);
  const held = await findHeld(running.client, promised.events);
  const judged = await judgeEvents(running.client, promised, { held, excuses });
  if (judged.verdict !== "anew") await readSessions(running, promised, { found: held.found, excuses });
  return judged;
}

/** Checks the sessions, after everything else. The broker may drop a damaged session if it logs that. */
async function readSessions(
  { client, broker, log }: Running,
  { retained, sent, topics }: Promised,
  { found, excuses }: { readonly found: Held["found"]; readonly excuses: Excuses },
): Promise<void> {
  if (retained === undefined) return;
  const later = topics.map((topic) => [`after the fault on ${topic}`, topic] as const);
  const isHeld = found.some(({ eventId }) => eventId === retained.eventId);
  await expectSessions(broker.mqttPort, {
    held: found,
    topicOf: new Map([...sent, ...later]),
    retained: isHeld ? retained : undefined,
    mayForget: () => excuses.mayForgetSubscriptions || log.some(({ message }) => /dropped/.test(String(message))),
    expectReady: () => expectReady(client),
  });
}

async function judgeEvents(
  client: Client,
  promised: Promised,
  { held, excuses }: { readonly held: Held; readonly excuses: Excuses },
): Promise<Judged> {
  const isEarlier = held.missing.length > 0;
  if (isEarlier && !excuses.mayBeginAnew) expectEarlier(held, excuses);
  if (held.damaged.length > 0 && !excuses.mayLoseBoth) {
    throw new Wrong(`${held.damaged.length} events are damaged that were intact in another file`);
  }
  const topics = isEarlier ? await topicsOf(client, promised.topics) : promised.topics;
  await expectDelivered(client, promised, { topics, held: held.found, ...excuses });
  if (held.damaged.length > 0) throw new Wrong("events are damaged, and the broker is ready");
  const [unproven] = await expectProven(client, { ...promised, events: held.found });
  await expectReady(client);
  if (topics.length === 0 && promised.topics.length > 0) return { verdict: "anew", said: "" };
  if (unproven !== undefined) return judgeUnproven(unproven, { excuses, warnings: await client.listGroupWarnings() });
  return { verdict: isEarlier ? "earlier" : "no effect", said: "" };
}

/** The index has everything, but the broker refuses a proof. The refusal must name the damage of the chain, and health the file and a remedy. */
function judgeUnproven(
  said: string,
  { excuses, warnings }: { readonly excuses: Excuses; readonly warnings: readonly (string | undefined)[] },
): Judged {
  if (!excuses.isChainHit || !/damaged/.test(said))
    return { verdict: "wrong: a proof was refused for another reason than a damaged chain", said };
  const isWarned = warnings.some((text = "") => subject.test(text) && remedy.test(text.replaceAll(folder, "")));
  return { verdict: isWarned ? "unproven" : "wrong: a proof was refused, and health names no file or no remedy", said };
}

async function topicsOf(client: Client, topics: readonly string[]): Promise<readonly string[]> {
  const are = await Promise.all(topics.map((topic) => client.exist(topic)));
  return topics.filter((_, index) => are[index]);
}

/** Checks that the fault excuses missing events, and that the missing events are in later blocks than the others. */
function expectEarlier({ found, missing }: Held, { mayBeEarlier }: Excuses): void {
  const first = Math.min(...blocksOf(missing));
  if (!mayBeEarlier) throw new Wrong(`acknowledged events are missing from block ${first} on: ${missing.length}`);
  const newest = Math.max(0, ...blocksOf(found));
  if (first <= newest) throw new Wrong(`events of block ${first} are missing, and those of ${newest} are there`);
}

function blocksOf(events: Held["found"]): readonly number[] {
  return events.map(({ eventId }) => placeOf(eventId).blockNumber);
}

/** Why the broker failed; undefined if it does not fail within `endTimeoutMs`. */
async function failureOf(broker: LocalBroker): Promise<Error | undefined> {
  using deadline = new Deadline(endTimeoutMs);
  return await Promise.race([broker.failure, deadline.passed]);
}

class Deadline implements Disposable {
  readonly passed: Promise<undefined>;
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number) {
    this.passed = new Promise((resolve) => {
      this.#timer = setTimeout(resolve, timeoutMs, undefined);
    });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

function judgeError(error: unknown): Judged {
  const said = error instanceof Error ? error.message : String(error);
  if (error instanceof NotReady) return judgeMessage("not ready", said);
  if (error instanceof Wrong || error instanceof CallFailed) return { verdict: `wrong: ${said}`, said };
  return { verdict: `wrong: ${said}`, said: error instanceof Error ? (error.stack ?? said) : said };
}

function judgeRefusal(
  error: unknown,
  { dataDir, before }: { readonly dataDir: string; readonly before: ReadonlyMap<string, string> },
): Judged {
  const said = error instanceof Error ? error.message : String(error);
  const judged = judgeMessage("refused", said);
  const changed = changesOf(before, digestOf(dataDir));
  if (judged.verdict !== "refused" || changed.length === 0) return judged;
  return { verdict: `wrong: a refused start changed ${changed.join(", ")}`, said };
}

function judgeMessage(verdict: "refused" | "ended" | "not ready", said: string): Judged {
  if (!subject.test(said)) return { verdict: `wrong: ${verdict}, and the message names no file or subscription`, said };
  return remedy.test(said.replaceAll(folder, ""))
    ? { verdict, said }
    : { verdict: `wrong: ${verdict}, and the message names no remedy`, said };
}

function judgeLog(judged: Judged, log: readonly LogLine[]): Judged {
  const words = log.map((line) => JSON.stringify(line)).join("\n");
  const { verdict } = judged;
  if (verdict === "no effect") return { verdict: /damaged/.test(words) ? "healed" : verdict, said: words };
  if (verdict === "anew")
    return /new chain/.test(words)
      ? { ...judged, said: words }
      : { verdict: "wrong: a new chain that the log does not mention", said: words };
  return judged;
}

/** Files without data: locks, and the index of a write-ahead log, which SQLite rebuilds. */
const holdsNothing = /^lock|-lock(-journal)?$|-shm$/;

function digestOf(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder).filter((name) => !holdsNothing.test(name));
  const digest = (name: string): string =>
    createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex");
  return new Map(names.map((name) => [name, digest(name)]));
}

function changesOf(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names.filter((name) => before.get(name) !== after.get(name));
}
