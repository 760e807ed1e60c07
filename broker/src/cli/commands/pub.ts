import { randomUUID } from "node:crypto";
import { type Publication, type PublishOutcome, type Stele, SteleError } from "@stele/client";
import { errorCatalogue } from "@stele/wire";
import type { Command } from "commander";
import { fromCloudEvent } from "../cloud-event.ts";
import { type CliIo, CommandFailed, UsageError } from "../io.ts";
import type { Column } from "../output.ts";
import { collectPair, parseCount } from "../parse.ts";
import { fillTemplate } from "../template.ts";
import { lineGroups, readAll } from "../stdin.ts";
import { define } from "./define.ts";

interface PubFlags {
  readonly ext?: Readonly<Record<string, string>>;
  readonly open?: true;
  readonly once?: string | true;
  readonly cloudevents?: true;
  readonly whole?: true;
  readonly extensionPrefix: string;
  readonly count: number;
  readonly template?: true;
}

/** An outcome as the command prints it. */
interface OutcomeRow {
  readonly topic: string;
  readonly eventId?: string;
  readonly error?: Pick<SteleError, "code" | "message" | "retry" | "wasRefused">;
  /** The publish key of an event whose outcome is unknown. With this key, the user can repeat the publish without a duplicate. */
  readonly once?: string | undefined;
}

const outcomeColumns: readonly Column<OutcomeRow>[] = [
  { title: "EVENT", of: ({ eventId }) => eventId, width: 20 },
  { title: "TOPIC", of: ({ topic }) => topic, width: 20 },
  {
    title: "OUTCOME",
    of: ({ error, once }) => (error === undefined ? "on the chain" : describe(error, once)),
  },
];

function describe({ code, message, wasRefused }: NonNullable<OutcomeRow["error"]>, once: string | undefined): string {
  const failure = code === undefined ? message : `${code} ${message}`;
  if (wasRefused) return failure;
  return `unknown: ${failure}${once === undefined ? "" : `; repeat it with --once ${once}`}`;
}

export function definePub(program: Command, io: CliIo): void {
  define<PubFlags>(program, io, {
    usage: "pub [topic] [content]",
    summary: "Publishes an event, or each line of stdin. It ends once all of them are on the chain.",
    examples: [
      "stele pub orders/new '{\"order\":1}' --ext svc-format=json",
      "seq 1 1000 | stele pub numbers --open",
      "stele pub orders/new --once order-1 --whole < order.json",
      "stele pub --cloudevents --once < events.ndjson",
      'stele pub numbers \'{"n":{{index}},"at":"{{time}}"}\' --template --count 1000',
    ],
    changes: () => true,
    flags: (command) =>
      command
        .option("--ext <key=value>", "extension of each event; may be repeated", collectPair)
        .option("--open", "open the topic first")
        .option(
          "--once [key]",
          "publish each event exactly once, however often the command tries (default key: random)",
        )
        .option("--whole", "publish all of stdin as one event")
        .option(
          "--cloudevents",
          "each line of stdin is a CloudEvent; its subject is the topic if the command names none",
        )
        .option("--count <number>", "publish the content this many times", parseCount, 1)
        .option("--template", "put {{index}} (from 1), {{uuid}} and {{time}} (ISO 8601) into the content")
        .option("--extension-prefix <prefix>", "prefix of the broker's extensions, for --cloudevents", "svc-"),
    run: async ({ stele, output, signal }, { words: [topic, content], flags }) => {
      checkCall({ topic, content }, flags);
      if (flags.open && topic !== undefined) await stele.open(topic, { signal });
      // Also ends the progress, which would overwrite what the user types.
      if (content === undefined && io.stdin.isTTY === true) output.note(describeInput(flags));
      const rows = new Rows(publishAll(stele, toPublications({ topic, content }, flags, io), signal));
      const count = await output.rows(rows, outcomeColumns, { isLive: content === undefined || flags.count > 1 });
      if (count === 0) output.note("nothing was published: stdin has no event");
      rows.check(flags.once !== undefined);
    },
  });
}

interface Words {
  readonly topic: string | undefined;
  readonly content: string | undefined;
}

function checkCall({ topic, content }: Words, { cloudevents, whole, once, count, template, open }: PubFlags): void {
  if (topic === undefined && !cloudevents) throw new UsageError("give a topic");
  if (topic?.trim() === "") throw new UsageError("the topic is blank"); // A blank topic must not mean the subject of each CloudEvent.
  if (topic === undefined && open) throw new UsageError("--open needs a topic on the command line");
  if (content !== undefined && (cloudevents || whole))
    throw new UsageError(
      "a content on the command line cannot be combined with --cloudevents or --whole, which read stdin",
    );
  if (cloudevents && whole) throw new UsageError("--cloudevents cannot be combined with --whole");
  if (content === undefined && (count !== 1 || template)) {
    throw new UsageError("--count and --template need a content on the command line");
  }
  if (once === "") throw new UsageError("the key of --once is empty");
  if (typeof once === "string" && ((content === undefined && !whole) || count !== 1)) {
    throw new UsageError("a key names one event: for many, give --once without a key");
  }
}

function describeInput({ whole }: PubFlags): string {
  return `reading ${whole ? "one event" : "events, one a line,"} from this terminal; Ctrl-D ends`;
}

/**
 * The events to publish, in groups. Lines of stdin that end in the same chunk are a group, so that a line of a slow producer does not wait for further lines.
 */
async function* toPublications(
  { topic = "", content }: Words,
  flags: PubFlags,
  io: CliIo,
): AsyncGenerator<readonly Publication[]> {
  const { once, ext: extensions, extensionPrefix: prefix } = flags;
  const common = { topic, once, extensions };
  if (content !== undefined) yield* repeat(content, flags, common);
  else if (flags.whole) yield [{ ...common, content: await readAll(io) }];
  else {
    for await (const lines of lineGroups(io)) {
      const full = lines.filter((line) => line.length > 0);
      yield full.map((line) =>
        flags.cloudevents ? fromCloudEvent(line, { ...common, prefix }) : { ...common, content: line },
      );
    }
  }
}

/** Maximum number of repeated events in one request. */
const repeatedAtOnce = 100;

/** The content `count` times, in groups of one request each. */
function* repeat(
  content: string,
  { count, template }: PubFlags,
  common: Omit<Publication, "content">,
): Generator<readonly Publication[]> {
  for (let done = 0; done < count; done += repeatedAtOnce) {
    const length = Math.min(repeatedAtOnce, count - done);
    yield Array.from({ length }, (_, place) => ({
      ...common,
      content: template
        ? fillTemplate(content, {
            index: () => String(done + place + 1),
            uuid: () => randomUUID(),
            time: () => new Date().toISOString(),
          })
        : content,
    }));
  }
}

interface Outcome {
  readonly outcome: PublishOutcome;
  readonly key: string | undefined;
}

/** Publishes the groups in order. Makes the random keys itself, because the client does not return the keys that it makes. */
async function* publishAll(
  stele: Stele,
  groups: AsyncIterable<readonly Publication[]>,
  signal: AbortSignal,
): AsyncGenerator<Outcome> {
  for await (const group of groups) {
    const keys = group.map(({ once }) => (once === true ? randomUUID() : once || undefined));
    const publications = group.map((publication, index) => ({ ...publication, once: keys[index] }));
    signal.throwIfAborted();
    const outcomes = await stele.publishMany(publications, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    yield* (outcomes ?? publications.map(toInterrupted)).map((outcome, index) => ({ outcome, key: keys[index] }));
    if (outcomes === undefined) return;
  }
}

/** The outcome of an event that may have been sent when Ctrl-C ended the command. */
function toInterrupted({ topic }: Publication): PublishOutcome {
  return { status: "failed", topic, error: new SteleError("the command was ended before the answer", { retry: true }) };
}

/** The outcomes as rows. Counts the failed ones. */
class Rows implements AsyncIterable<OutcomeRow> {
  readonly #outcomes: AsyncIterable<Outcome>;
  #count = 0;
  #refused = 0;
  #unknown = 0;
  /** Whether an event was refused because its topic does not exist. */
  #lackTopic = false;

  constructor(outcomes: AsyncIterable<Outcome>) {
    this.#outcomes = outcomes;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutcomeRow> {
    for await (const { outcome, key } of this.#outcomes) {
      this.#count += 1;
      yield outcome.status === "published" ? toPublishedRow(outcome) : this.#toFailedRow(outcome, key);
    }
  }

  /** @throws CommandFailed unless all events were published. */
  check(haveKeys: boolean): void {
    const of = `of ${this.#count} events`;
    const advice = haveKeys
      ? "publish each again with the key in its row, which prevents a duplicate"
      : "check the topic before you publish them again";
    const parts = [
      ...(this.#refused > 0 ? [`${this.#refused} ${of} were not published`] : []),
      ...(this.#lackTopic ? ["open the topic first, with --open or stele topics open"] : []),
      ...(this.#unknown > 0 ? [`outcome unknown for ${this.#unknown} ${of}: ${advice}`] : []),
    ];
    if (parts.length > 0) throw new CommandFailed(parts.join("; "));
  }

  #toFailedRow({ topic, error }: Extract<PublishOutcome, { readonly status: "failed" }>, key: string | undefined) {
    const { code, message, retry, wasRefused } = error;
    const row = { topic, error: { code, message, retry, wasRefused } };
    if (code === errorCatalogue.topicNotExist.code) this.#lackTopic = true;
    if (wasRefused) this.#refused += 1;
    else this.#unknown += 1;
    return wasRefused ? row : { ...row, once: key };
  }
}

function toPublishedRow({ topic, eventId }: Extract<PublishOutcome, { readonly status: "published" }>): OutcomeRow {
  return { topic, eventId };
}
