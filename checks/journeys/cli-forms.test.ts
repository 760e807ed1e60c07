import { join } from "node:path";
import { Stele } from "@stele/client";
import { operationNames, toAdminOpenApi, toOpenApi } from "@stele/wire";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { callBrokerCommand } from "../harness/broker-command.ts";
import { callStele, type CommandRun, runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { masked } from "./cli/masked.ts";

const forms = ["table", "json", "ndjson"] as const;
const folder = createTempFolder();
let world: RunningWorld;
let stele: Stele;
let receiver: Receiver;
let registry: string | undefined;
beforeAll(async () => {
  world = await embeddedWorld.start();
  stele = new Stele({ url: world.broker.url });
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const environment = () => ({ STELE_URL: world.broker.url, HOME: folder.path });
const mask = (text: string): string =>
  masked(text, {
    [world.broker.url]: "http://BROKER",
    [receiver.url]: "http://RECEIVER",
    [world.dataDir]: "DATA",
    [folder.path]: "FOLDER",
  });

/** The operations that these tests' client commands have sent, named as in the broker's documents. */
const sent = new Set<string>();
beforeEach(() => {
  const send = globalThis.fetch;
  vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
    const { pathname, origin } = new URL(input instanceof Request ? input.url : input);
    if (origin === world.broker.url) sent.add(toOperation(`${init?.method ?? "GET"} ${pathname}`, init?.body));
    return send(input, init);
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The name of an operation: the HTTP method and path of a call, and for JSON-RPC, which has one path, also the called method. */
function toOperation(call: string, body: unknown): string {
  if (!call.endsWith("/jsonrpc")) return call;
  const requests = [JSON.parse(String(body))].flat() as readonly { readonly method: string }[]; // As the client sends them.
  return `${call} ${requests[0]?.method}`;
}

describe.each(forms)("commands with -o %s", (form) => {
  /** Output of a client command, which runs in this process. */
  const shown = async (...args: readonly string[]): Promise<string> =>
    check(await callStele([...args, "-o", form], { env: environment() }));
  /** Output of a command that changes keys or roles, or verifies, which runs in this process. */
  const shownByBroker = async (name: "key" | "role" | "verify", ...args: readonly string[]): Promise<string> =>
    check(await callBrokerCommand(name, [...args, "-o", form]));
  /** Output of another command of the broker, which runs as a separate process. */
  const shownByProcess = async (...args: readonly string[]): Promise<string> =>
    check(await runStele([...args, "-o", form], { env: environment() }));
  const check = ({ code, stdout, stderr }: CommandRun): string => {
    expect({ code, stderr: mask(stderr).replaceAll(/watching .*\n/g, "") }).toEqual({ code: 0, stderr: "" });
    if (form === "json") expect(() => JSON.parse(stdout) as unknown).not.toThrow();
    if (form === "ndjson") for (const line of stdout.trim().split("\n")) JSON.parse(line);
    return mask(stdout);
  };

  it("lists topics, and tails CloudEvents", async () => {
    const topic = `ce/${form}`;
    expect(await shown("topics", "open", topic)).not.toBe("");
    const data = '{"n":12345678901234567890}';
    await shown("pub", topic, data, "--ext", "svc-format=json", "--ext", "svc-colour=red");
    const events = await shown("tail", topic, "--since", "1h", "--format", "cloudevents", "-n", "1");
    expect(events).toContain(data);
    expect(events.replaceAll(/eip155:\d+:\w+/g, "SOURCE")).toMatchSnapshot("tail");
    const topics = await shown("topics", "list");
    expect(topics.split("\n").filter((line) => line.includes(topic))).toMatchSnapshot("topics list");
  });

  it("publishes a template several times", async () => {
    const topic = `template/${form}`;
    const content = '{"n":{{index}},"id":"{{ uuid }}","at":"{{time}}"}';
    expect(await shown("pub", topic, content, "--open", "--template", "--count", "3")).toMatchSnapshot("pub --count");
    const { value: last } = await stele.admin.events(topic).next();
    expect((await stele.getEvent(String(last.eventId))).json()).toEqual({
      n: 3,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });

  it("retries, and delivers or discards dead letters", async () => {
    const topic = `letters/${form}`;
    await stele.open(topic);
    receiver.setBehaviour((_attempt, response) => void response.writeHead(500).end());
    const params = { topic, url: receiver.url, onFailure: "skip", attemptsMax: "1" };
    const id = await world.client.subscribe(params);
    await stele.publishMany(["1", "2"].map((content) => ({ topic, content })));
    await until("both events are dead letters", async () => (await countLetters(id)) === 2);
    receiver.setBehaviour((attempt, response) => {
      attempt.isAccepted = true;
      response.writeHead(204).end();
    });
    expect((await shown("subs", "dead-letters", id)).replaceAll(/:\d{4,5}\b/g, ":PORT")).toMatchSnapshot(
      "dead-letters",
    );
    const { value: letter } = await stele.admin.deadLetters(id).next();
    expect(await shown("subs", "redeliver", id, "--event", String(letter.eventId))).toMatchSnapshot("redeliver");
    expect(await shown("subs", "discard", id)).toMatchSnapshot("discard");
    expect(await countLetters(id)).toBe(0);
    expect(await shown("subs", "retry", id)).toMatchSnapshot("retry");
    await world.client.unSubscribe(id);
  });

  it("lists contexts and changes between them", async () => {
    const env = { XDG_CONFIG_HOME: join(folder.path, form) };
    const context = async (...args: readonly string[]): Promise<string> =>
      check(await callStele(["context", ...args, "-o", form], { env: { ...environment(), ...env } }));
    await context("add", "one", "--url", "http://one.example");
    await context("add", "two", "--url", "http://two.example", "--group", "2");
    expect(await context("list")).toMatchSnapshot("list");
    expect(await context("use", "one")).toMatchSnapshot("use");
  });

  it("verifies an event and a topic", async () => {
    vi.restoreAllMocks(); // As a command of the broker, `verify` also reads the chain.
    const topic = `verified/${form}`;
    await stele.open(topic);
    const { eventId } = await stele.publish(topic, "x");
    registry ??= await registryOf(eventId);
    const trusted = ["--broker", world.broker.url, "--registry", registry];
    expect(await shownByBroker("verify", eventId, ...trusted)).toMatchSnapshot("event");
    expect(await shownByBroker("verify", "--topic", topic, ...trusted)).toMatchSnapshot("topic");
  });

  it("creates, lists and revokes keys, and sets, shows and deletes roles", async () => {
    const settings = ["--data-dir", join(folder.path, `keys-${form}`)];
    const first = await callBrokerCommand("role", ["set", "seller", "[]", ...settings]);
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining(`keys-${form}/keys.sqlite`) });
    const flags = ["--principal", "shop", "--role", "admin", "--expires", "2d"];
    const made = await shownByBroker("key", "create", ...flags, ...settings);
    expect(maskKeys(made)).toMatchSnapshot("key create");
    expect(maskKeys(await shownByBroker("key", "list", ...settings))).toMatchSnapshot("key list");
    const [, id = ""] = /stele_([0-9a-f]{16})_/.exec(made) ?? [];
    expect(maskKeys(await shownByBroker("key", "revoke", id, ...settings))).toMatchSnapshot("key revoke");
    const rules = '[{"actions":["publish"],"filter":"orders/#"}]';
    expect(await shownByBroker("role", "set", "seller", rules, ...settings)).toMatchSnapshot("role set");
    expect(await shownByBroker("role", "list", ...settings)).toMatchSnapshot("role list");
    expect(await shownByBroker("role", "show", "seller", ...settings)).toMatchSnapshot("role show");
    expect(await shownByBroker("role", "delete", "seller", ...settings)).toMatchSnapshot("role delete");
  });

  it("backs up, restores, scrubs and activates", async () => {
    const [backup, restored] = ["backup", "restored"].map((name) => join(folder.path, `${name}-${form}`)) as [
      string,
      string,
    ]; // One for each name.
    expect(await shownByProcess("backup", backup, "--data-dir", world.dataDir)).toMatchSnapshot("backup");
    expect(await shownByProcess("restore", backup, "--data-dir", restored)).toMatchSnapshot("restore");
    const scrubbed = await runStele(["scrub", "--data-dir", restored, "-o", form, "--log-level", "error"], {
      env: environment(),
    });
    expect(check(scrubbed)).toMatchSnapshot("scrub");
    expect(await shownByProcess("activate", "--data-dir", restored)).toMatchSnapshot("activate");
    expect(await shownByProcess("activate", "--data-dir", restored)).toMatchSnapshot("activate again");
  });
});

function maskKeys(text: string): string {
  return text.replaceAll(/stele_[0-9a-f]{16}_[\w-]+/g, "KEY").replaceAll(/\b[0-9a-f]{16}\b/g, "ID");
}

async function countLetters(id: string): Promise<number> {
  let count = 0;
  for await (const _letter of stele.admin.deadLetters(id)) count += 1;
  return count;
}

async function registryOf(eventId: string): Promise<string> {
  const args = [eventId, "--broker", world.broker.url, "--remember", "-o", "json"];
  const { stdout } = await callBrokerCommand("verify", args, { XDG_CONFIG_HOME: join(folder.path, "known") });
  return (JSON.parse(stdout) as { event: { registry: string } }).event.registry; // As docs/proofs.md describes.
}

describe("stele tail, pub and listen", () => {
  it("tail --template prints a line for each event, and escapes control characters in its content", async () => {
    await stele.open("filled");
    await stele.publish("filled", "a\u{1b}[2Jb");
    const args = [
      "tail",
      "filled",
      "--after",
      "OFFSET_FIRST",
      "-n",
      "1",
      "--template",
      "{{sequence}} {{topic}}: {{content}}",
    ];
    expect(await callStele(args, { env: environment() })).toMatchObject({
      code: 0,
      stdout: "1 filled: a\\u{1b}[2Jb\n",
    });
  });

  it.each([
    [["tail", "t", "--template", "{{nothing}}"], "{{nothing}}"],
    [["tail", "t", "--template", "x", "-o", "json"], "cannot be combined"],
    [["tail", "t", "--format", "xml"], "cloudevents"],
    [["pub", "t", "--count", "2"], "need a content"],
    [["pub", "t", "{{no}}", "--template"], "{{no}}"],
    [["pub", "t", "x", "--count", "2", "--once", "key"], "names one event"],
    [["pub", "t", "x", "--count", "0", "--template"], "a number from 1"],
    [["tail", "t", "--since", "10m", "--after", "OFFSET_FIRST"], "cannot be used with"],
    [["listen", "t", "--forward", "http://x", "--since", "1h", "--after", "x"], "cannot be used with"],
  ])("%j is refused with exit code 2", async (args, reason) => {
    const { code, stdout, stderr } = await callStele(args, { env: environment() });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(reason);
  });
});

it.each(["start", "verify", "key", "role", "scrub", "backup", "restore", "activate"])(
  "%s has help with examples, also after help, and shell completion offers the actions and flags that the help shows",
  async (name) => {
    const { code, stdout } = await runStele([name, "--help"], { env: environment() });
    expect(code).toBe(0);
    expect(await runStele(["help", name], { env: environment() })).toEqual({ code, stdout, stderr: "" });
    expect(stdout).toContain("Examples:\n  stele ");
    if (name !== "start") expect(stdout).toMatch(/-o\b/);
    const [usage = ""] = stdout.split("\n\n");
    const actions = [...usage.matchAll(new RegExp(`stele ${name} ([a-z]+)`, "g"))].map(([, action]) => action);
    const flags = [...stdout.matchAll(/(?<![\w-])--[a-z][\w-]*\w/g)].map(([flag]) => flag);
    expect(await completionOf(name)).toEqual(expect.arrayContaining([...actions, ...flags]));
  },
);

/** The words that fish offers after the name of a command. */
async function completionOf(name: string): Promise<readonly string[]> {
  const { stdout } = await callStele(["completion", "fish"], { env: environment() });
  const [, words = ""] = new RegExp(`seen_subcommand_from ${name}' -a '(.*)'$`, "m").exec(stdout) ?? [];
  return words.split(" ");
}

function operations(paths: object, base: string): readonly string[] {
  return Object.entries(paths).flatMap(([path, methods]: [string, object]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${base}${path}`),
  );
}

// Runs last, because it checks what the commands above have sent.
it("client commands sent only operations that the broker documents", () => {
  const settings = { version: "0", basePath: "", extensionPrefix: "svc-" };
  const documented = [
    ...operations(toOpenApi(settings).paths, ""),
    ...operations(toAdminOpenApi(settings).paths, "/admin/v1"),
    ...operationNames.map((name) => `POST /jsonrpc ${name}`),
  ].map((operation) => new RegExp(`^${operation.replaceAll(/\{\w+\}/g, "[^/]+")}$`));
  expect(sent.size).toBeGreaterThan(8);
  expect([...sent].filter((call) => !documented.some((pattern) => pattern.test(call)))).toEqual([]);
});
