import { expect, it } from "vitest";
import { parseArguments } from "./arguments.ts";

const user = { env: { HOME: "/nonexistent" } };
const registry = `0x${"ab".repeat(20)}`;

it.each([
  ["--broker", "--group"],
  ["--url", "--group"],
  ["-u", "-g"],
])("takes %s and %s, as other commands do, for the broker and its group", (url, group) => {
  const words = ["00000000-1-1", "--registry", registry, url, "http://127.0.0.1:9/", group, "2"];
  expect(parseArguments(words, user)).toMatchObject({
    kind: "event",
    broker: "http://127.0.0.1:9",
    group: "2",
    registry,
  });
});

it("refuses a flag that it does not know, and two addresses of a broker", () => {
  expect(() => parseArguments(["00000000-1-1", "--constructor", "x"], user)).toThrow(
    '"--constructor" is not a known flag',
  );
  const twice = ["00000000-1-1", "--url", "http://127.0.0.1:9", "--broker", "http://127.0.0.1:9"];
  expect(() => parseArguments(twice, user)).toThrow("--broker is given more than once");
});

it("does not show the password of a chain node's URL that does not parse", () => {
  const words = ["00000000-1-1", "--registry", registry, "--rpc", "https://me:pa#secret@host"];
  expect(() => parseArguments(words, user)).toThrow(/^--rpc: this is not an http\(s\) URL$/);
});
