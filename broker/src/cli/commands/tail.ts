import type { CloudEventBody, ReceivedEvent } from "@stele/client";
import { type Command, Option } from "commander";
import { toEscaped } from "../../lib/printable.ts";
import type { Session } from "../connection.ts";
import { type CliIo, UsageError } from "../io.ts";
import { first, openCloudEventTail, openTail, sinceOption, startOf, type TailOptions } from "../open-tail.ts";
import type { Column } from "../output.ts";
import { parseCount } from "../parse.ts";
import { fillTemplate } from "../template.ts";
import { define } from "./define.ts";

interface TailFlags {
  readonly format: "interface" | "cloudevents";
  readonly template?: string;
  readonly after?: string;
  readonly since?: number;
  readonly filter?: string;
  readonly count?: number;
}

const eventColumns: readonly Column<ReceivedEvent>[] = [
  { title: "EVENT", of: ({ eventId }) => eventId, width: 20 },
  { title: "TOPIC", of: ({ topic }) => topic, width: 20 },
  { title: "CONTENT", of: (event) => event.text() },
];

/** A CloudEvent and its JSON text. */
interface CloudEventRow {
  readonly event: CloudEventBody;
  readonly text: string;
}

const cloudEventColumns: readonly Column<CloudEventRow>[] = [
  { title: "EVENT", of: ({ event }) => event.id, width: 20 },
  { title: "TOPIC", of: ({ event }) => event.subject, width: 20 },
  { title: "CLOUDEVENT", of: ({ text }) => text },
];

export function defineTail(program: Command, io: CliIo): void {
  define<TailFlags>(program, io, {
    usage: "tail <topics...>",
    summary: "Shows events as they come, until Ctrl-C. Reconnects without a gap.",
    examples: [
      "stele tail 'orders/#'",
      "stele tail orders/new --after OFFSET_FIRST -o ndjson | jq -r .eventId",
      "stele tail '#' --since 10m --filter '$.status == \"paid\"'",
      "stele tail 'orders/#' --format cloudevents -o ndjson",
      "stele tail 'orders/#' --template '{{topic}}: {{content}}'",
    ],
    flags: (command) =>
      command
        .option("--after <place>", "start after an eventId, OFFSET_FIRST, OFFSET_LAST or a time (ISO 8601)")
        .addOption(sinceOption())
        .option("--filter <filter>", "only events with these values: '$.status == \"paid\"'")
        .addOption(
          new Option("--format <format>", "form of each event")
            .choices(["interface", "cloudevents"])
            .default("interface"),
        )
        .option(
          "--template <text>",
          "print this for each event, with {{topic}}, {{eventId}}, {{sequence}}, {{content}}",
        )
        .option("-n, --count <number>", "end after this many events", parseCount),
    run: async (session, { words, flags: { after, since, filter, count, format, template, output } }) => {
      if (template !== undefined && (format !== "interface" || output !== "table")) {
        throw new UsageError("--template cannot be combined with --format or -o");
      }
      const options = { topics: words, after: startOf({ since, after }), filter };
      if (format === "cloudevents") await showCloudEvents(session, options, count);
      else if (template !== undefined) await fillFor(session, options, { template, count });
      else {
        const events = await openTail(session, options);
        await session.output.rows(first(events, count), eventColumns, { isLive: true });
      }
    },
  });
}

async function showCloudEvents(session: Session, options: TailOptions, count: number | undefined): Promise<void> {
  const events = await openCloudEventTail(session, options);
  const rows = async function* (): AsyncGenerator<CloudEventRow> {
    for await (const event of first(events, count)) yield { event: event.json(), text: event.text };
  };
  await session.output.rows(rows(), cloudEventColumns, { isLive: true, toJson: ({ text }) => text });
}

/** Prints the template for each event. Checks the template before it connects. */
async function fillFor(
  session: Session,
  options: TailOptions,
  { template, count }: { readonly template: string; readonly count: number | undefined },
): Promise<void> {
  fill(template, { topic: "", eventId: "", text: () => "" });
  const events = await openTail(session, options);
  for await (const event of first(events, count)) await session.output.raw(`${fill(template, event)}\n`);
}

/** Escapes the values, which strangers wrote. Does not escape the template, in which the user may have written a tab or a line feed. */
function fill(template: string, event: Pick<ReceivedEvent, "topic" | "eventId" | "text">): string {
  const { topic, eventId } = event;
  return fillTemplate(template, {
    topic: () => toEscaped(topic),
    eventId: () => toEscaped(eventId),
    sequence: () => toEscaped(eventId.split("-")[1] ?? ""),
    content: () => toEscaped(event.text()),
  });
}
