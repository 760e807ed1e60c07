import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Hex, keccak256, toHex } from "@stele/eth/node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ChainEnd, HeadFile, headFileOf, readHeadFile } from "./head-file.ts";

const sectorBytes = 512;

let folder: string;
let chainFile: string;
let headFile: HeadFile;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-head-"));
  chainFile = join(folder, "chain.sqlite");
  headFile = new HeadFile(chainFile);
});
afterEach(() => {
  headFile.close();
  rmSync(folder, { recursive: true });
});

function blockAt(number: bigint): ChainEnd {
  return { number, hash: toHex(keccak256(Buffer.from(String(number)))) };
}

describe("a head file", () => {
  it("the head file is missing until `prepare` gets a block, and then names that block", () => {
    headFile.write(blockAt(0n));
    expect(readHeadFile(chainFile)).toEqual({ status: "missing" });
    headFile.prepare(blockAt(0n));
    expect(readHeadFile(chainFile)).toEqual({ status: "intact", ...blockAt(0n) });
    expect(readdirSync(folder)).toEqual(["chain.sqlite-head"]);
    expect(statSync(headFileOf(chainFile)).mode & 0o777).toBe(0o600);
  });

  it.each([1n, 9n, 10n, 2n ** 53n])(
    "the head file names block %i as soon as `write` returns, before any sync",
    (number) => {
      headFile.prepare(blockAt(number - 1n));
      headFile.write(blockAt(number));
      expect(readHeadFile(chainFile)).toEqual({ status: "intact", ...blockAt(number) });
    },
  );

  it("the head file fits into one sector of a disk, which is written whole or not at all", () => {
    headFile.prepare(blockAt(0n));
    headFile.write(blockAt(2n ** 60n));
    expect(statSync(headFileOf(chainFile)).size).toBeLessThanOrEqual(sectorBytes);
  });

  it("`prepare` in the next process does not replace a newer block with an older one", () => {
    headFile.prepare(blockAt(6n));
    headFile.write(blockAt(7n));
    const next = new HeadFile(chainFile);
    next.prepare(blockAt(3n));
    expect(readHeadFile(chainFile)).toEqual({ status: "intact", ...blockAt(7n) });
    next.close();
  });

  it.each(["intact", "missing"])("`prepare` leaves the %s head file of another chain at the path as it is", (other) => {
    if (other === "intact") headFile.prepare(blockAt(6n));
    const before = readHeadFile(chainFile);
    expect(() => new HeadFile(chainFile, () => true).prepare(blockAt(3n))).toThrow("was moved, deleted or replaced");
    expect(readHeadFile(chainFile)).toEqual(before);
  });

  it("`settle` rewrites a damaged head file, even if no block was written", () => {
    writeFileSync(headFileOf(chainFile), "damaged");
    headFile.settle(blockAt(5n));
    expect(readHeadFile(chainFile)).toEqual({ status: "intact", ...blockAt(5n) });
  });

  it("`settle` leaves an intact head file unchanged if this process wrote no block", () => {
    headFile.prepare(blockAt(6n));
    headFile.write(blockAt(7n));
    new HeadFile(chainFile).settle({ number: 7n, hash: blockAt(8n).hash });
    expect(readHeadFile(chainFile)).toEqual({ status: "intact", ...blockAt(7n) });
  });

  it.each(["accept", "accept\n", " accept \r\n"])(
    "readHeadFile returns accepted if an operator has written %j",
    (text) => {
      writeFileSync(headFileOf(chainFile), text);
      expect(readHeadFile(chainFile)).toEqual({ status: "accepted" });
    },
  );
});

describe("a damaged head file", () => {
  let intact: Buffer;
  beforeEach(() => {
    headFile.prepare(blockAt(1_234n));
    intact = readFileSync(headFileOf(chainFile));
  });

  it("readHeadFile returns damaged if one bit of any byte is flipped", () => {
    for (let at = 0; at < intact.length; at += 1) {
      const bytes = Buffer.from(intact);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at & 7));
      writeFileSync(headFileOf(chainFile), bytes);
      expect(readHeadFile(chainFile), `byte ${at}`).toEqual({ status: "damaged" });
    }
  });

  it("readHeadFile returns damaged for a file truncated at any length", () => {
    for (let length = intact.length - 1; length >= 0; length -= 1) {
      truncateSync(headFileOf(chainFile), length);
      expect(readHeadFile(chainFile), `length ${length}`).toEqual({ status: "damaged" });
    }
  });

  it.each<[string, (text: string) => string]>([
    ["zeros", (text) => "\0".repeat(text.length)],
    ["an extra line at the end", (text) => `${text}\n`],
    ["another block's number", (text) => text.replace("1234", "1233")],
    ["another hash", (text) => text.replace(blockAt(1_234n).hash, (hash): Hex => `0x${"0".repeat(hash.length - 2)}`)],
  ])("readHeadFile returns damaged if the file has %s", (_, change) => {
    writeFileSync(headFileOf(chainFile), change(intact.toString("latin1")), "latin1");
    expect(readHeadFile(chainFile)).toEqual({ status: "damaged" });
  });
});

it("readHeadFile throws an error with the path of a file that it cannot read", () => {
  mkdirSync(headFileOf(chainFile));
  expect(() => readHeadFile(chainFile)).toThrow(
    `the chain's head file ${headFileOf(chainFile)} cannot be read: EISDIR`,
  );
});
