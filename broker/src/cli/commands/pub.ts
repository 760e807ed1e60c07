import { randomUUID } from "node:crypto";
import type { Publication, PublishOutcome, Stele } from "@stele/client";
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

/** An outcome as it is printed. */
interface OutcomeRow {
  readonly topic: string;
  readonly eventId?: string;
  readonly error?: { readonly code: number | undefined; readonly message: string; readonly retry: boolean };
}

const outcomeColumns: readonly Column<OutcomeRow>[] = [
  { title: "EVENT", of: ({ eventId }) => eventId, width: 20 },
  { title: "TOPIC", of: ({ topic }) => topic, width: 20 },
  {
    title: "FAILED",
    of: ({ error }) => (error === undefined ? undefined : `${error.code ?? ""} ${error.message}`.trim()),
  },
];

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
    flags: (command) =>
      command
        .option("--ext <key=value>", "extension of each event; may be repeated", collectPair)
        .option("--open", "open the topic first")
        .option("--once [key]", "publish exactly once, however often it is tried; the key is random unless given")
        .option("--whole", "publish all of stdin as one event")
        .option("--cloudevents", "each line of stdin is a CloudEvent; its subject is the topic unless one is given")
        .option("--count <number>", "publish the content so many times", parseCount, 1)
        .option("--template", "put {{index}} (from 1), {{uuid}} and {{time}} (ISO 8601) into the content")
        .option("--extension-prefix <prefix>", "how the broker's extensions begin, for --cloudevents", "svc-"),
    run: async ({ stele, output, signal }, { words: [topic, content], flags }) => {
      checkCall({ topic, content }, flags);
      if (flags.open && topic !== undefined) await stele.open(topic, { signal });
      let failed = 0;
      const outcomes = toRows(
        publishAll(stele, toPublications({ topic, content }, flags, io), signal),
        () => (failed += 1),
      );
      const count = await output.rows(outcomes, outcomeColumns, { isLive: content === undefined || flags.count > 1 });
      if (failed > 0) throw new CommandFailed(`${failed} of ${count} events were not published`);
    },
  });
}

interface Words {
  readonly topic: string | undefined;
  readonly content: string | undefined;
}

function checkCall({ topic, content }: Words, { cloudevents, whole, once, count, template }: PubFlags): void {
  if (topic === undefined && !cloudevents) throw new UsageError("give a topic");
  if (content !== undefined && (cloudevents || whole)) throw new UsageError("content and stdin exclude each other");
  if (cloudevents && whole) throw new UsageError("--cloudevents and --whole exclude each other");
  if (content === undefined && (count !== 1 || template)) {
    throw new UsageError("--count and --template need a content on the command line");
  }
  if (typeof once === "string" && ((content === undefined && !whole) || count !== 1)) {
    throw new UsageError("a key names one event: for many, give --once without a key");
  }
}

/** Lines that came together stay together: a slow producer waits for no other line. */
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
      const full = lines.filter((line) => line !== "");
      yield full.map((line) =>
        flags.cloudevents ? fromCloudEvent(line, { ...common, prefix }) : { ...common, content: line },
      );
    }
  }
}

/** Events of one request. */
const repeatedAtOnce = 100;

/** The content as often as it was asked for, in requests of some. */
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

async function* publishAll(
  stele: Stele,
  groups: AsyncIterable<readonly Publication[]>,
  signal: AbortSignal,
): AsyncGenerator<PublishOutcome> {
  for await (const publications of groups) yield* await stele.publishMany(publications, { signal });
}

async function* toRows(outcomes: AsyncIterable<PublishOutcome>, onFailed: () => void): AsyncGenerator<OutcomeRow> {
  for await (const outcome of outcomes) {
    const { topic } = outcome;
    if (outcome.status === "published") {
      yield { topic, eventId: outcome.eventId };
    } else {
      const { code, message, retry } = outcome.error;
      onFailed();
      yield { topic, error: { code, message, retry } };
    }
  }
}
