import type { ReceivedEvent } from "@stele/client";
import type { Command } from "commander";
import type { CliIo } from "../io.ts";
import { first, openTail } from "../open-tail.ts";
import type { Column } from "../output.ts";
import { parseCount, parseDuration } from "../parse.ts";
import { define } from "./define.ts";

interface TailFlags {
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

export function defineTail(program: Command, io: CliIo): void {
  define<TailFlags>(program, io, {
    usage: "tail <topics...>",
    summary: "Shows events as they come, until Ctrl-C. A connection that ends comes back without a gap.",
    examples: [
      "stele tail 'orders/#'",
      "stele tail orders/new --after OFFSET_FIRST -o ndjson | jq -r .eventId",
      "stele tail '#' --since 10m --filter '$.status == \"paid\"'",
    ],
    flags: (command) =>
      command
        .option("--after <place>", "start after an eventId, OFFSET_FIRST, OFFSET_LAST or a time (ISO 8601)")
        .option("--since <age>", "start that long ago: 90s, 10m, 12h, 2d", parseDuration)
        .option("--filter <filter>", "only events with these values: '$.status == \"paid\"'")
        .option("-n, --count <number>", "end after so many events, at least one", parseCount),
    run: async (session, { words, flags: { after, since, filter, count } }) => {
      const start = since === undefined ? after : new Date(Date.now() - since);
      const events = await openTail(session, { topics: words, after: start, filter });
      await session.output.rows(first(events, count), eventColumns, { isLive: true });
    },
  });
}
