import { expect, it } from "vitest";
import { encodeFrame } from "./encode-frame.ts";

const headers = [["server", "a:b\\c/1"]] as const;

it.each([
  ["CONNECTED", "a:b\\c/1"],
  ["MESSAGE", "a\\cb\\\\c/1"],
] as const)("escapes the headers of a MESSAGE, but not those of a CONNECTED: %s", (command, value) => {
  for (const version of ["1.1", "1.2"] as const) {
    expect(encodeFrame({ command, headers }, version).toString()).toBe(`${command}\nserver:${value}\n\n\0`);
  }
});
