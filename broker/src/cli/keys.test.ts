import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Contexts } from "./contexts.ts";
import { findBroker } from "./find-broker.ts";
import { runCli } from "./run-cli.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "stele-cli-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const loadSettings = () => Promise.reject(new Error("no settings"));

async function run(argv: readonly string[], input: string) {
  let stderr = "";
  const write = (text: string | Uint8Array, done: () => void): void => {
    stderr += String(text);
    done();
  };
  const stdin = (async function* () {
    yield input;
  })();
  const stdout = { write: (_: string | Uint8Array, done: () => void) => done() };
  const { signal } = new AbortController();
  const io = { env: { XDG_CONFIG_HOME: folder }, stdin, stdout, stderr: { write }, signal, loadSettings };
  return { code: await runCli(argv, io, "test"), stderr };
}

it("context add refuses an empty key, and keeps the context that it would replace", async () => {
  const add = ["context", "add", "shop", "--url", "http://127.0.0.1:1", "--key"];
  expect(await run(add, "secret\n")).toMatchObject({ code: 0 });
  expect(await run(add, "\n")).toEqual({
    code: 2,
    stderr: "stele: --key: stdin is empty, so the context was not added\n",
  });
  const contexts: unknown = JSON.parse(readFileSync(join(folder, "stele/contexts.json"), "utf8"));
  expect(contexts).toMatchObject({ contexts: { shop: { key: "secret" } } });
});

it("a command refuses an empty key file", async () => {
  const file = join(folder, "key.txt");
  writeFileSync(file, "\n");
  const outcome = await run(["topics", "list", "--url", "http://127.0.0.1:1", "--key-file", file], "");
  expect(outcome).toEqual({ code: 2, stderr: `stele: --key-file: ${file} is empty\n` });
});

it("a command that tries again reads its key file again, and keeps the last key while the file is empty", async () => {
  const file = join(folder, "key.txt");
  writeFileSync(file, "first\n");
  const contents = ["second\n", ""];
  const keys: unknown[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers.authorization);
    const next = contents.shift();
    if (next !== undefined) writeFileSync(file, next);
    const isLast = next === undefined;
    response.writeHead(isLast ? 200 : 503, { "content-type": "application/json", "retry-after": "0" });
    response.end(isLast ? '{"topics":[],"total":0}' : "{}");
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await run(["topics", "list", "--url", url, "--key-file", file], "");
  server.close();
  expect(keys).toEqual(["Bearer first", "Bearer second", "Bearer second"]);
});

it.skipIf(process.platform === "win32")("a key file that is a pipe is read once", () => {
  const pipe = join(folder, "key");
  execFileSync("mkfifo", [pipe]);
  const script = `echo first > "${pipe}"; until [ -e "${folder}/asked" ]; do sleep 0.01; done; echo second > "${pipe}"`;
  const writer = spawn("sh", ["-c", script]);
  const contexts = new Contexts({ env: { HOME: folder } });
  const { key } = findBroker({ url: "http://127.0.0.1:1", keyFile: pipe }, contexts, {});
  writeFileSync(join(folder, "asked"), "");
  expect(key?.()).toBe("first");
  writer.kill();
});
