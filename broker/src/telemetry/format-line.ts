import { toEscaped } from "../lib/printable.ts";

interface LogLine extends Readonly<Record<string, unknown>> {
  readonly level: string;
  readonly time: string;
  readonly message: string;
}

/**
 * Formats a JSON log line for people: `2026-11-22T10:21:07.031Z info  event published  topic="a"`. Escapes control characters, because clients and failing
 * servers write some of the texts: these must not move the cursor of a terminal or look like another log line.
 */
export function formatLine(json: string): string {
  const { level, time, message, ...fields } = JSON.parse(json) as LogLine; // Our own logger wrote it.
  const [others, stacks] = splitOffStacks(fields);
  const pairs = Object.entries(others).map(([key, value]) => `${key}=${toEscaped(JSON.stringify(value))}`);
  return `${[`${time} ${level.padEnd(5)} ${message}`, ...pairs].join("  ")}\n${stacks}`;
}

/**
 * Takes the stack of each error out of the fields, to print it on lines of its own. Indents these lines: a stack contains the error's message, which must not
 * look like another log line.
 */
function splitOffStacks(fields: Readonly<Record<string, unknown>>): readonly [Record<string, unknown>, string] {
  let stacks = "";
  const rest = Object.fromEntries(
    Object.entries(fields).map(([key, value]) => {
      if (!hasStack(value)) return [key, value];
      const { stack, ...others } = value;
      for (const line of stack.split("\n")) stacks += `  ${toEscaped(line)}\n`;
      return [key, others];
    }),
  );
  return [rest, stacks];
}

function hasStack(value: unknown): value is { readonly stack: string } {
  return typeof value === "object" && value !== null && "stack" in value && typeof value.stack === "string";
}
