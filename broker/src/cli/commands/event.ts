import type { ReceivedEvent } from "@stele/client";
import type { Command } from "commander";
import type { CliIo } from "../io.ts";
import type { Column } from "../output.ts";
import { define } from "./define.ts";

const eventFields: readonly Column<ReceivedEvent>[] = [
  { title: "EVENT", of: ({ eventId }) => eventId },
  { title: "TOPIC", of: ({ topic }) => topic },
  { title: "EXTENSIONS", of: ({ extensions }) => toPairs(extensions) },
  { title: "CONTENT", of: (event) => event.text() },
];

export function defineEvent(program: Command, io: CliIo): void {
  define<{ readonly proof?: true; readonly raw?: true }>(program, io, {
    usage: "event <eventId>",
    summary: "Shows an event, or its proof.",
    examples: [
      "stele event 2cf24dba-59-1124",
      "stele event 2cf24dba-59-1124 --proof > proof.json && stele verify proof.json --remember",
      "stele event 2cf24dba-59-1124 --raw > content.bin",
    ],
    flags: (command) =>
      command
        .option("--proof", "print its proof in JSON, for stele verify")
        .option("--raw", "print nothing but its content"),
    run: async ({ stele, output, signal }, { words: [eventId = ""], flags }) => {
      if (flags.proof) return output.json(await stele.getProof(eventId, { signal }));
      const event = await stele.getEvent(eventId, { signal });
      if (flags.raw) return output.raw(event.bytes());
      return output.record(event, eventFields);
    },
  });
}

function toPairs(extensions: Readonly<Record<string, string>>): string {
  return Object.entries(extensions)
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");
}
