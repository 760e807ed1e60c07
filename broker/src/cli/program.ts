import { Command } from "commander";
import { brokerCommands } from "./broker-commands.ts";
import { defineBench } from "./commands/bench.ts";
import { defineCompletion } from "./commands/completion.ts";
import { defineContext } from "./commands/context.ts";
import { defineEvent } from "./commands/event.ts";
import { defineDoctor } from "./commands/doctor.ts";
import { defineListen } from "./commands/listen.ts";
import { definePub } from "./commands/pub.ts";
import { defineSubs } from "./commands/subs.ts";
import { defineTail } from "./commands/tail.ts";
import { defineTopics } from "./commands/topics.ts";
import type { CliIo } from "./io.ts";

const definitions = [
  definePub,
  defineTail,
  defineTopics,
  defineEvent,
  defineSubs,
  defineListen,
  defineBench,
  defineDoctor,
  defineContext,
  defineCompletion,
] as const;

/** The program with all its commands, ready to parse arguments. */
export function createProgram(io: CliIo, version: string): Command {
  const program = new Command("stele")
    .description("An event broker that commits every event to a blockchain, and its clients.")
    .version(`stele ${version}`, "--version", "print the version")
    .helpCommand(true)
    .showSuggestionAfterError(true)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text, () => {}),
      writeErr: (text) => io.stderr.write(text, () => {}),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage. STELE_URL and STELE_KEY name a broker and its key; STELE_URL overrides the current context.\n",
    );
  for (const [name, { summary }] of Object.entries(brokerCommands)) program.command(name).description(summary);
  for (const define of definitions) define(program, io);
  return program;
}
