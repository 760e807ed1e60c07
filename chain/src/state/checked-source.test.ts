import { expect, it } from "vitest";
import { ChainDamagedError } from "../chain-damaged-error.ts";
import { CheckedSource } from "./checked-source.ts";

function failing(message: string): CheckedSource {
  const fail = (): never => {
    throw new Error(message);
  };
  return new CheckedSource({ readNode: fail, readCode: fail });
}

it("CheckedSource throws ChainDamagedError for a page that SQLite finds malformed", () => {
  const source = failing("database disk image is malformed");
  expect(() => source.findNode("key", new Uint8Array(32))).toThrow(ChainDamagedError);
  expect(() => source.findCode(new Uint8Array(32))).toThrow(ChainDamagedError);
});

it("CheckedSource rethrows a temporary failure of SQLite unchanged", () => {
  const source = failing("disk I/O error");
  expect(() => source.findNode("key", new Uint8Array(32))).toThrow(/^disk I\/O error$/);
  expect(() => source.findCode(new Uint8Array(32))).toThrow(/^disk I\/O error$/);
});
