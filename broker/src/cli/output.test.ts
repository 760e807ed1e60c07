import { describe, expect, it } from "vitest";
import type { OutputFormat } from "../lib/output-format.ts";
import { Output, type RowsOptions } from "./output.ts";

const columns = [{ title: "N", of: (row: number) => row }];

/** A stream, and the text that was written to it. */
function textStream(isTTY: boolean) {
  let text = "";
  const write = (chunk: string | Uint8Array, done: () => void): void => {
    text += String(chunk);
    done();
  };
  return { stream: { isTTY, write }, read: () => text };
}

/** The text that `Output.rows` writes to stdout for these rows. With `fails`, the source throws after the last row. */
async function written(
  format: OutputFormat,
  rows: readonly number[],
  options: RowsOptions<number> & { fails?: boolean } = {},
) {
  const { stream, read } = textStream(false);
  const io = { env: {}, stdout: stream, stderr: stream };
  const source = async function* () {
    yield* rows;
    if (options.fails) throw new Error("the end");
  };
  const writing = new Output(io, format).rows(source(), columns, options);
  await (options.fails ? expect(writing).rejects.toThrow("the end") : writing);
  return read();
}

describe("Output.rows", () => {
  it.each<OutputFormat>(["json", "ndjson", "table"])(
    "writes no %s if the source fails before its first row",
    async (format) => {
      expect(await written(format, [], { fails: true })).toBe("");
    },
  );

  it("writes an empty JSON array if there are no rows", async () => {
    expect(await written("json", [])).toBe("[]\n");
  });

  it("writes complete JSON if the source fails after some rows", async () => {
    expect(JSON.parse(await written("json", [1, 2], { fails: true }))).toEqual([1, 2]);
  });
});

/** U+009B begins a command of a terminal, as ESC [ does. */
const hostile = { value: "\u009b31m\u202e\n" };

it.each<[string, (output: Output) => Promise<unknown>]>([
  ["rows", (output) => output.rows([hostile], [])],
  ["record", (output) => output.record(hostile, [])],
  ["json", (output) => output.json(hostile)],
])("Output.%s escapes the control characters in JSON on a terminal only", async (_, write) => {
  for (const isTTY of [true, false]) {
    const { stream, read } = textStream(isTTY);
    await write(new Output({ env: {}, stdout: stream, stderr: stream }, "json"));
    expect([JSON.parse(read())].flat()).toEqual([hostile]);
    expect(/[\u009b\u202e]/.test(read())).toBe(!isTTY);
  }
});

it("Output.rows prints valid JSON on a terminal if a row's own text has white space between its values", async () => {
  const { stream, read } = textStream(true);
  const output = new Output({ env: {}, stdout: stream, stderr: stream }, "ndjson");
  await output.rows([1], [], { toJson: () => '{\t"a":\r1,"b":"\u009b\\t"}' });
  expect(read()).toBe('{ "a": 1,"b":"\\u009b\\t"}\n');
});
