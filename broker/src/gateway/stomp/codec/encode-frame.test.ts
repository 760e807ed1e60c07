import { expect, it } from "vitest";
import { encodeFrame } from "./encode-frame.ts";
import { versions } from "./frame.ts";

const headers = [["server", "a:b\\c/1"]] as const;

it.each([
  ["CONNECTED", "a:b\\c/1"],
  ["MESSAGE", "a\\cb\\\\c/1"],
] as const)("escapes the headers of a MESSAGE, but not those of a CONNECTED: %s", (command, value) => {
  for (const version of ["1.1", "1.2"] as const) {
    expect(encodeFrame({ command, headers }, version).toString()).toBe(`${command}\nserver:${value}\n\n\0`);
  }
});

it.each(versions)("lets no header of a publisher end a MESSAGE early, in STOMP %s", (version) => {
  const forged = "x\n\n\0ERROR\nmessage:forged\n\n\0";
  const given = [["receipt-id", forged]] as const;
  expect(encodeFrame({ command: "MESSAGE", headers: given }, version).toString()).toBe("MESSAGE\n\n\0");
});
