import { execFile } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTempFolder } from "../harness/temp-folder.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const run = promisify(execFile);
const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));
const manual = readFileSync(new URL("../../docs/rest.md", import.meta.url), "utf8");
const [, documented = ""] = /<!-- types:begin -->\n```ts\n([\s\S]*?)```\n<!-- types:end -->/.exec(manual) ?? [];
const running = useWorld(embeddedWorld);
const folder = createTempFolder();

beforeAll(async () => {
  symlinkSync(modules, join(folder.path, "node_modules"));
  writeFileSync(join(folder.path, "package.json"), '{"type": "module"}');
  const document = await running().client.http.send({ method: "GET", path: "/openapi.json" });
  writeFileSync(join(folder.path, "openapi.json"), document.text);
  await runModule("openapi-typescript/bin/cli.js", ["openapi.json", "--output", "stele.ts"]);
});
afterAll(() => folder[Symbol.dispose]());

async function runModule(path: string, args: readonly string[]) {
  return run(process.execPath, [join(modules, path), ...args], { cwd: folder.path });
}

/** Compiles a program with the generated types; returns the compiler's messages. */
async function compile(name: string, code: string): Promise<string> {
  writeFileSync(join(folder.path, `${name}.ts`), code);
  const target = ["--module", "nodenext", "--target", "es2023", "--lib", "es2023,dom", "--types", "node"];
  const args = ["--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", ...target, `${name}.ts`];
  // If it finds errors, the compiler prints them to standard output and exits with a failure.
  const done = await runModule("typescript-7/bin/tsc", args).catch((failure: { readonly stdout: string }) => failure);
  return done.stdout;
}

it("the program of docs/rest.md compiles with the types of openapi-typescript, and runs", async () => {
  expect(await compile("program", documented.replace("http://127.0.0.1:8080", running().broker.url))).toBe("");
  const { stdout } = await run(process.execPath, [join(folder.path, "program.js")]);
  expect(stdout).toMatch(/^[0-9a-f]{8}-1-\d+ hello\n100101\n$/);
});

it("the types refuse an operation, a parameter and a property that do not exist", async () => {
  const client = 'import createClient from "openapi-fetch";\nimport type { components, paths } from "./stele.js";\n';
  const lines = [
    'const client = createClient<paths>({ baseUrl: "http://127.0.0.1" });',
    'await client.GET("/rest/opens", { params: { query: { topic: "a" } } });',
    'await client.GET("/rest/open", { params: { query: { topics: "a" } } });',
    'export const read = (event: components["schemas"]["Notification"]) => event.event.text;',
    'export const known = (event: components["schemas"]["Notification"]) => event.event.content;',
  ];
  const found = await compile("wrong", `${client}${lines.join("\n")}\n`);
  expect([...found.matchAll(/^wrong\.ts\((\d+),/gm)].map(([, line]) => line)).toEqual(["4", "5", "6"]);
});
