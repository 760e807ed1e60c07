import { describe, expect, it } from "vitest";
import type { OutputFormat } from "../lib/output-format.ts";
import { Output, type RowsOptions } from "./output.ts";

const columns = [{ title: "N", of: (row: number) => row }];

/** The text that `Output.rows` writes to stdout for these rows. With `fails`, the source throws after the last row. */
async function written(
  format: OutputFormat,
  rows: readonly number[],
  options: RowsOptions<number> & { fails?: boolean } = {},
) {
  let text = "";
  const stream = {
    write: (chunk: string | Uint8Array, done: () => void) => {
      text += String(chunk);
      done();
    },
  };
  const io = { env: {}, stdout: stream, stderr: stream };
  const source = async function* () {
    yield* rows;
    if (options.fails) throw new Error("the end");
  };
  const writing = new Output(io, format).rows(source(), columns, options);
  await (options.fails ? expect(writing).rejects.toThrow("the end") : writing);
  return text;
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
