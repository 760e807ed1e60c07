import { execFile } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findFreePort } from "../harness/free-port.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";

const manual = readFileSync(new URL("../../docs/client.md", import.meta.url), "utf8");
const examples = [...manual.matchAll(/<!-- (\w+):begin -->\n```ts\n([\s\S]*?)```/g)].map(
  ([, name = "", code = ""]) => [name, code] as const,
);
const run = promisify(execFile);
const folder = createTempFolder();
let world: RunningWorld;
let port: number;
beforeAll(async () => {
  symlinkSync(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(folder.path, "node_modules"));
  world = await embeddedWorld.start();
  port = await findFreePort();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** The output of each example. The examples are valid JavaScript too, so Node.js runs them. */
const outputs: Readonly<Record<string, RegExp>> = {
  publish: /^[0-9a-f]{8}-1-\d+ { order: 1 }\n$/,
  many: /^3\n$/,
  subscribe: /^orders\/new [0-9a-f]{8}-1-\d+ {"order":1}\n$/,
  admin: /^$/,
  webhook: /^orders\/new hello\n$/,
};

it("docs/client.md has exactly the examples that this file runs", () => {
  expect(examples.map(([name]) => name)).toEqual(Object.keys(outputs));
});

// Each example builds on the ones before it, as when a reader types them.
it.each(examples)("the example %s of docs/client.md prints what it should, and no error", async (name, code) => {
  const file = join(folder.path, `${name}.mjs`);
  const here = code.replaceAll("http://127.0.0.1:8080", world.broker.url).replace("9000", String(port));
  writeFileSync(file, name === "webhook" ? `${here}${callReceiver}` : here);
  const { stdout, stderr } = await run(process.execPath, [file], {
    env: { ...process.env, HOOK: `http://127.0.0.1:${port}` },
  });
  expect(stdout).toMatch(outputs[name] ?? "");
  expect(stderr).toBe("");
});

/** Code to append to the example `webhook`: it sends the example's receiver a signed callback and one with a wrong signature, and exits. */
const callReceiver = `
import { createHmac } from "node:crypto";
const body = JSON.stringify({ subscriptionId: "s", event: { topic: "orders/new", content: "aGVsbG8=", extensions: {}, eventId: "x" } });
const time = String(Math.floor(Date.now() / 1000));
const key = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64");
const digest = createHmac("sha256", key).update(\`x.\${time}.\${body}\`).digest("base64");
const headers = { "webhook-id": "x", "webhook-timestamp": time, "webhook-signature": \`v1,\${digest}\` };
const answers = [];
for (const signed of [headers, { ...headers, "webhook-id": "y" }]) {
  answers.push((await fetch(process.env.HOOK, { method: "POST", body, headers: signed })).status);
}
if (String(answers) !== "204,401") console.error(answers);
process.exit();
`;
