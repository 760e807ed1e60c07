import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { UsageError } from "./io.ts";
import { lineGroups, readAll } from "./stdin.ts";

async function read(...chunks: readonly (string | Uint8Array)[]): Promise<readonly (readonly string[])[]> {
  const groups: (readonly string[])[] = [];
  for await (const lines of lineGroups({ stdin: Readable.from(chunks) })) {
    groups.push(lines.map((line) => Buffer.from(line).toString("latin1")));
  }
  return groups;
}

const bytes = (text: string): Uint8Array => Buffer.from(text, "latin1");

describe("lineGroups", () => {
  it.each([
    ["whole lines", ["a\nb\n"], [["a", "b"]]],
    ["a last line without a line feed", ["a\nb"], [["a"], ["b"]]],
    ["lines that end with CR LF", ["a\r\n\r\nb\r"], [["a", ""], ["b"]]],
    ["lines split over several chunks", ["a", "b", "c\nd", "e\n"], [["abc"], ["de"]]],
    ["nothing", [], []],
    ["bytes that are not UTF-8", [bytes("\u00ff\u0000\u00c3\n")], [["\u00ff\u0000\u00c3"]]],
    ["a character split over two chunks", [bytes("\u00c3"), bytes("\u00bc\n")], [["\u00c3\u00bc"]]],
  ])("reads %s", async (_what, chunks, groups) => {
    expect(await read(...chunks)).toEqual(groups);
  });

  it("reads a line of 8 MiB, and refuses a longer one", async () => {
    await expect(read(Buffer.alloc(8 * 1024 * 1024), "x")).rejects.toThrow(UsageError);
    expect(await read(Buffer.alloc(8 * 1024 * 1024), "\n")).toHaveLength(1);
  });
});

it("readAll reads 8 MiB, and refuses more without reading on", async () => {
  const part = Buffer.alloc(4 * 1024 * 1024);
  expect(await readAll({ stdin: Readable.from([part, part]) })).toHaveLength(2 * part.length);
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    for (let parts = 0; ; parts += 1) {
      if (parts === 4) throw new Error("it reads on");
      yield part;
    }
  };
  await expect(readAll({ stdin: endless() })).rejects.toThrow(UsageError);
});
