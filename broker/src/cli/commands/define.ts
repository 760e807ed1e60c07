import type { Command } from "commander";
import { addConnectionFlags, type ConnectionFlags, openSession, type Session } from "../connection.ts";
import { type CliIo, CommandFailed, isClosedPipe } from "../io.ts";

/** A command that calls a broker. */
export interface Definition<Flags> {
  /** Name and arguments, such as `show <id>`. */
  readonly usage: string;
  readonly summary: string;
  /** Command lines as a user types them. */
  readonly examples: readonly string[];
  /** Adds the command's own flags. */
  readonly flags?: (command: Command) => Command;
  readonly run: (session: Session, call: Call<Flags>) => Promise<void>;
  /** Whether the command changes something. Then it fails if it ends early because nothing reads its output. */
  readonly changes?: (flags: Flags) => boolean;
}

/** What the user typed. */
export interface Call<Flags> {
  readonly words: readonly string[];
  readonly flags: ConnectionFlags & Flags;
}

/** Adds a command below `parent`. */
export function define<Flags>(parent: Command, io: CliIo, definition: Definition<Flags>): Command {
  const command = parent.command(definition.usage).description(definition.summary);
  addConnectionFlags(definition.flags?.(command) ?? command);
  addExamples(command, definition.examples);
  return command.action(async () => {
    const flags = command.opts<ConnectionFlags & Flags>();
    const session = openSession(flags, io);
    const changes = definition.changes?.(flags) === true;
    if (!changes) session.output.endWith(io.signal);
    session.output.beginProgress(toName(command));
    try {
      await definition.run(session, { words: command.args, flags });
    } catch (error) {
      if (!isClosedPipe(error) || !changes) throw error;
      throw new CommandFailed(
        "nothing reads the output any more: the command ended early, and may have done only part of its work",
      );
    } finally {
      session.output.endProgress();
    }
  });
}

/** What the user types, such as `stele topics show`. */
function toName(command: Command): string {
  const name = command.name();
  return command.parent === null ? name : `${toName(command.parent)} ${name}`;
}

export function addExamples(command: Command, examples: readonly string[]): Command {
  return command.addHelpText("after", `\nExamples:\n${examples.map((example) => `  ${example}\n`).join("")}`);
}
