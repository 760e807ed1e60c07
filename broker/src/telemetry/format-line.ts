import { toEscaped } from "../lib/printable.ts";

interface LogLine extends Readonly<Record<string, unknown>> {
  readonly level: string;
  readonly time: string;
  readonly message: string;
}

/**
 * Formats a JSON log line for people: `2026-11-22T10:21:07.031Z info  event published  topic="a"`. Texts of clients, and of servers that fail, can neither
 * move the cursor of a terminal nor imitate a line of the log.
 */
export function formatLine(json: string): string {
  const { level, time, message, ...fields } = JSON.parse(json) as LogLine; // Our own logger wrote it.
  const [stackless, stacks] = partStacks(fields);
  const pairs = Object.entries(stackless).map(([key, value]) => `${key}=${toEscaped(JSON.stringify(value))}`);
  return `${[`${time} ${level.padEnd(5)} ${message}`, ...pairs].join("  ")}\n${stacks}`;
}

/** Takes the stacks out of the fields, to print them below the line, with their own line breaks and indented: they contain the messages of errors. */
function partStacks(fields: Readonly<Record<string, unknown>>): readonly [Record<string, unknown>, string] {
  let stacks = "";
  const rest = Object.fromEntries(
    Object.entries(fields).map(([key, value]) => {
      if (!hasStack(value)) return [key, value];
      const { stack, ...stackless } = value;
      for (const line of stack.split("\n")) stacks += `  ${toEscaped(line)}\n`;
      return [key, stackless];
    }),
  );
  return [rest, stacks];
}

function hasStack(value: unknown): value is { readonly stack: string } {
  return typeof value === "object" && value !== null && "stack" in value && typeof value.stack === "string";
}
