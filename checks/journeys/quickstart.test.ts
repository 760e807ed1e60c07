import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const [, marked = ""] = /<!-- quickstart:begin -->([\s\S]*?)<!-- quickstart:end -->/.exec(readme) ?? [];
const address = "http://127.0.0.1:8080";
const run = promisify(execFile);

/** The commands of the shell blocks in a text, separated by empty lines. */
function commandsOf(text: string): readonly string[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .flatMap(([, block = ""]) => block.split(/\n\n+/))
    .map((command) => command.trim())
    .filter((command) => command !== "");
}

/** The expected result of a command, by the operation that it calls. */
const outcomes: readonly (readonly [RegExp, unknown])[] = [
  [/\/rest\/open/, true],
  [/"method":"publish"/, { jsonrpc: "2.0", id: "1", result: expect.objectContaining({ status: "SUCCESS" }) }],
  [/\/rest\/publish/, { topic: "orders/new", eventId: expect.stringMatching(/-1-\d+$/), status: "SUCCESS" }],
  [/\/rest\/state/, expect.objectContaining({ topicName: "orders/new", sequenceNumber: 1 })],
  [/\/rest\/subscribe/, expect.stringMatching(/^[0-9a-f-]{36}$/)],
];

const canRun = ["bash", "curl"].every((tool) => {
  try {
    execFileSync(tool, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
});

describe("the README", () => {
  const running = useWorld(embeddedWorld);
  // Not the tail, which does not end: tail.test.ts runs it.
  const commands = commandsOf(readme).filter((command) => command.includes("curl") && !command.includes("/tail"));

  it("the README has a quickstart between its markers, with commands for the default address", () => {
    const quickstart = commandsOf(marked);
    expect(quickstart.length).toBeGreaterThanOrEqual(3);
    expect(commands.slice(0, quickstart.length)).toEqual(quickstart);
    for (const command of commands) expect(command).toContain(address);
  });

  // Each command builds on the ones before it, as when a reader types them.
  it.runIf(canRun).each(commands.map((command) => [command]))(
    "the command of the README works as described (needs bash and curl): %s",
    async (command) => {
      const here = command.replaceAll(address, running().broker.url);
      const { stdout } = await run("bash", ["-e", "-c", here]);
      const expected = outcomes.find(([pattern]) => pattern.test(command));
      expect(expected).toBeDefined();
      expect(JSON.parse(stdout)).toEqual(expected?.[1]);
    },
  );
});
