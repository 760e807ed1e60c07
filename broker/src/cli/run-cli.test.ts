import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { run } from "./testing/run.ts";

interface RpcBody {
  readonly id: number;
  readonly method: string;
  readonly params: { readonly topic?: string };
}

let sent: string[];

/** Answers each call with success. */
beforeEach(() => {
  sent = [];
  vi.stubGlobal("fetch", async (input: string, init: RequestInit) => {
    const { pathname, search } = new URL(input);
    if (pathname !== "/jsonrpc") {
      sent.push(pathname + search);
      return Response.json({ items: ["a", "b", "c"].map((id) => ({ id, events: 1 })) });
    }
    const body: unknown = await new Response(init.body).json();
    const answers = ([body].flat() as readonly RpcBody[]).map(answer); // The client wrote the body.
    return Response.json(Array.isArray(body) ? answers : answers[0]);
  });
});
afterEach(() => vi.unstubAllGlobals());

function answer({ id, method, params: { topic = "" } }: RpcBody): object {
  sent.push(`${method} ${topic}`);
  const info = { topicName: topic, topicAddress: "0x", senderAddress: "0x", createdTimestamp: 0 };
  const results: Readonly<Record<string, unknown>> = {
    publish: { topic, eventId: `e-${sent.length}`, status: "SUCCESS" },
    open: "true",
    list: { total: 3, pageIndex: 0, pageSize: 99, topicInfoList: [info, info, info] },
  };
  return { jsonrpc: "2.0", id, result: results[method] };
}

/** Runs a command whose output nobody reads after its first row. */
async function runClosed(...argv: readonly string[]) {
  const { code, stderr } = await run(argv, { rowsMax: 1 });
  return { code, stderr };
}

it.each([
  ["pub", ["pub", "t"], ["publish t", "publish t"]],
  ["topics open", ["topics", "open", "a", "b", "c"], ["open a", "open b"]],
  ["subs pause", ["subs", "pause", "--all"], ["/admin/v1/subscriptions/pause?all=true&limit=500"]],
])("%s fails if it ends early because nothing reads its output", async (_, argv, done) => {
  expect(await runClosed(...argv)).toEqual({
    code: 1,
    stderr:
      "stele: nothing reads the output any more: the command ended early, and may have done only part of its work\n",
  });
  expect(sent).toEqual(done);
});

it.each([
  ["topics list", ["topics", "list"]],
  ["subs pause --dry-run", ["subs", "pause", "--all", "--dry-run"]],
])("%s, which changes nothing, ends without an error if nothing reads its output", async (_, argv) => {
  expect(await runClosed(...argv)).toEqual({ code: 0, stderr: "" });
});

it.each([
  ["refuses --group alone, which does not confirm that all are meant", ["--group", "1"], 2, []],
  [
    "accepts --group together with --all",
    ["--group", "1", "--all"],
    0,
    ["/admin/v1/subscriptions/pause?all=true&groupId=1&limit=500"],
  ],
  ["refuses a blank --group, which would name the default group", ["--group", "", "--all"], 2, []],
  ["accepts --group together with identifiers", ["a", "--group", "1"], 0, ["/admin/v1/subscriptions/a/pause"]],
])("subs pause: %s", async (...[, flags, code, done]) => {
  expect(await run(["subs", "pause", ...flags], {})).toMatchObject({ code });
  expect(sent).toEqual(done);
});

it.each([
  ["warns that a skip may have taken effect if its answer was lost", [], "UND_ERR_SOCKET", true],
  ["does not warn if the broker cannot have received the skip", [], "CERT_HAS_EXPIRED", false],
  ["does not warn after a dry run", ["--dry-run"], "UND_ERR_SOCKET", false],
])("subs skip: %s", async (...[, flags, code, isDoubtful]) => {
  vi.stubGlobal("fetch", () =>
    Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error(), { code }) })),
  );
  const { code: exitCode, stderr } = await run(["subs", "skip", "a", ...flags], {});
  expect(exitCode).toBe(1);
  expect(stderr.includes("the order may have taken effect")).toBe(isDoubtful);
});

it.each([
  [
    "says that the order may have taken effect",
    [],
    /^stele: the command was ended .*; the order may have taken effect/,
  ],
  ["says nothing of a dry run", ["--dry-run"], /^$/],
])("subs skip, ended by Ctrl-C while its request is under way, %s", async (...[, flags, says]) => {
  const ending = new AbortController();
  vi.stubGlobal("fetch", () => {
    ending.abort();
    return new Promise(() => {});
  });
  const { code, stderr } = await run(["subs", "skip", "a", ...flags], { signal: ending.signal });
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(says) });
});

it("subs skip that Ctrl-C ends between two requests does not say that the next subscription may have changed", async () => {
  const ending = new AbortController();
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (input: string) => {
    asked.push(new URL(input).pathname);
    return Response.json({ id: "a", events: 1, dryRun: false });
  });
  const onText = (): void => ending.abort();
  const { code, stdout, stderr } = await run(["subs", "skip", "a", "b"], { signal: ending.signal, onText });
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(stdout.join("")).toContain('"id":"a"');
  expect(asked).toEqual(["/admin/v1/subscriptions/a/skip"]);
});

it.each([
  [
    "may have taken effect",
    [],
    "the order may have taken effect for 1 subscription: check the cursor before you repeat it",
  ],
  ["refused the order, if it is a dry run", ["--dry-run"], "2 subscriptions refused the order"],
])("subs skip says for which subscriptions the broker %s", async (...[, flags, says]) => {
  const dryRun = flags.length > 0;
  const [paused, unknown] = [
    { code: 100507, detail: "it is locked" },
    { code: 200000, detail: "unknown error" },
  ];
  const items = [paused, unknown].map((error, index) => ({ id: String(index), events: 0, dryRun, error }));
  vi.stubGlobal("fetch", async () => Response.json({ items }));
  const { code, stdout, stderr } = await run(["subs", "skip", "--all", ...flags], { format: [] });
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) });
  expect(stdout.join("").includes("unknown: unknown error")).toBe(!dryRun);
});

it.each([
  [["skip", "a"], "for a: check the cursor before you repeat it"],
  [["skip", "a", "--to", "OFFSET_LAST"], "for a: check the cursor before you repeat it"],
  [["skip", "a", "--to", "7"], "for a"],
  [["replay", "a", "--from", "OFFSET_FIRST"], "for a"],
  [["redeliver", "--all"], "for some subscriptions"],
  [["pause", "a"], "for a"],
])("subs %j suggests checking the cursor only if a repeat would skip more", async (argv, advice) => {
  vi.stubGlobal("fetch", async () => Response.json({ code: 200000, message: "unknown error" }, { status: 500 }));
  const { stderr } = await run(["subs", ...argv], {});
  expect(stderr.trim()).toMatch(new RegExp(`the order may have taken effect ${advice}$`));
});

describe("pub, ended by Ctrl-C while a request is under way,", () => {
  it.each([
    { name: "says that the outcome is unknown", flags: [], advice: "check the topic before", key: {} },
    {
      name: "names the key that makes a repeat safe",
      flags: ["--once"],
      advice: "publish each again with the key in its row",
      key: { once: expect.any(String) },
    },
  ])("$name", async ({ flags, advice, key }) => {
    const ending = new AbortController();
    const answering = globalThis.fetch;
    vi.stubGlobal("fetch", (input: string, init: RequestInit) => {
      if (sent.length === 0) return answering(input, init);
      ending.abort();
      return new Promise(() => {});
    });
    const { code, stdout, stderr } = await run(["pub", "t", ...flags], { signal: ending.signal });
    const says = `stele: outcome unknown for 1 of 2 events: ${advice}`;
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(says) });
    expect(stdout.map((row) => JSON.parse(row) as object)).toEqual([
      { topic: "t", eventId: "e-1" },
      { topic: "t", error: expect.objectContaining({ wasRefused: false }), ...key },
    ]);
  });
});

it("pub fails if Ctrl-C ends it between two requests, since the rest of stdin is not published", async () => {
  const ending = new AbortController();
  const answering = globalThis.fetch;
  vi.stubGlobal("fetch", async (input: string, init: RequestInit) => {
    const response = await answering(input, init);
    queueMicrotask(() => ending.abort());
    return response;
  });
  expect(await run(["pub", "t"], { signal: ending.signal })).toMatchObject({ code: 1 });
  expect(sent).toEqual(["publish t"]);
});

it.each([
  ["tail", ["tail", "t"]],
  ["listen", ["listen", "t", "--forward", "http://127.0.0.1:1"]],
])("%s --since starts in 1970 if the age reaches further back", async (_, argv) => {
  const starts: (string | null)[] = [];
  vi.stubGlobal("fetch", async (input: string) => {
    starts.push(new URL(input).searchParams.get("after"));
    return Response.json({ code: 100702, message: "not allowed" }, { status: 403 });
  });
  expect(await run([...argv, "--since", "999999999d"], {})).toMatchObject({ code: 1 });
  expect(starts).toEqual(["1970-01-01T00:00:00.000Z"]);
});

it.each([
  ["stele topics show", ["topics", "show", "t"]],
  ["stele event", ["event", "2cf24dba-1-1"]],
])("%s shows its name while it runs on a terminal", async (name, argv) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  vi.stubGlobal("fetch", async () => {
    vi.advanceTimersByTime(1_000);
    return Response.json({ code: 100101, message: "topic not exist" });
  });
  const { stderr } = await run(argv, { isTerminal: true });
  expect(stderr).toContain(`${name}: 1 s`);
});

it.each([
  ["the topic of pub, which would mean the subject of each CloudEvent", ["pub", "", "--cloudevents"], "the topic"],
  ["the place of tail, which would mean the newest event", ["tail", "t", "--after", ""], "the place of --after"],
  [
    "the place of listen, which would mean the newest event",
    ["listen", "t", "--forward", "http://127.0.0.1:1", "--after", " "],
    "the place of --after",
  ],
])("refuses a blank argument, which may come from an unset variable: %s", async (_, argv, subject) => {
  const { code, stderr } = await run(argv, {});
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(`stele: ${subject} is blank`) });
  expect(sent).toEqual([]);
});

it.each([
  ["pub", ["pub", "t"], "reading events, one a line, from this terminal; Ctrl-D ends\n"],
  ["pub --whole", ["pub", "t", "--whole"], "reading one event from this terminal; Ctrl-D ends\n"],
  ["pub with a content", ["pub", "t", "x"], ""],
])("on a terminal, %s says what it reads", async (_, argv, says) => {
  expect(await run(argv, { isTerminal: true })).toMatchObject({ code: 0, stderr: says });
});

it("pub says that it published nothing if stdin has no event, for example because a shell left out an empty content", async () => {
  for (const input of [[], ["\n\r\n"]]) {
    const { code, stderr } = await run(["pub", "t"], { input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "nothing was published: stdin has no event\n" });
  }
  expect(sent).toEqual([]);
});

it("pub refuses an extension that is given twice", async () => {
  const { code, stderr } = await run(["pub", "t", "x", "--ext", "svc-a=1", "--ext", "svc-a=2"], {});
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("svc-a is given more than once.") });
  expect(sent).toEqual([]);
});

it("context add says that it reads the key from a terminal", async () => {
  const folder = mkdtempSync(join(tmpdir(), "contexts-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const argv = ["context", "add", "shop", "--url", "http://shop", "--key"];
  const { code, stderr } = await run(argv, { env: { XDG_CONFIG_HOME: folder }, isTerminal: true });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "reading the key from this terminal; Ctrl-D ends\n" });
});

it("bench refuses --bytes that no broker accepts, before it opens its topic", async () => {
  const { code, stderr } = await run(["bench", "t", "--bytes", "999999999"], {});
  expect({ code, stderr }).toEqual({ code: 2, stderr: "stele: --bytes must be at most 8388608\n" });
  expect(sent).toEqual([]);
});

it("tail --template truncates no content, keeps the template's tab, and escapes control characters of the event", async () => {
  const text = `${"x".repeat(5_000)}\u0007`;
  const event = { topic: "t", content: Buffer.from(text).toString("base64"), extensions: {}, eventId: "2cf24dba-1-1" };
  const stream = `id: 2cf24dba-1-1\ndata: ${JSON.stringify(event)}\n\n`;
  const headers = { "content-type": "text/event-stream" };
  vi.stubGlobal("fetch", async () => new Response(stream, { headers }));
  const argv = ["tail", "t", "--template", "{{topic}}\t{{content}}", "--count", "1"];
  const { code, stdout } = await run(argv, { format: [] });
  expect({ code, stdout }).toEqual({ code: 0, stdout: [`t\t${"x".repeat(5_000)}\\u{7}\n`] });
});

it.each(["http://me@host", "http://:secret@host"])("listen refuses the receiver %s, as a broker does", async (url) => {
  const { code, stderr } = await run(["listen", "t", "--forward", url], {});
  const says = "stele: --forward contains a user name or a password; write any other @ as %40\n";
  expect({ code, stderr }).toEqual({ code: 2, stderr: says });
  expect(sent).toEqual([]);
});

it.each([
  "https://me:pa#secret@host",
  "https://me:12#secret@host",
  "https://me:12/secret@host",
  "https://me:12?secret@host",
  "https://me:12/?secret@host",
  "https://me:12\\secret@host",
  "https:me:12/secret@host",
  "https://me:1\t2/secret@host",
  "me:secret@host",
  "https://me:secret@host",
])("%s is refused as the broker's URL, without the password", async (url) => {
  const { code, stderr } = await run(["topics", "list", "--url", url], {});
  expect(code).toBe(2);
  expect(stderr).toMatch(/^stele: the address of the broker (?:is not|contains)/);
  expect(stderr).not.toContain("secret");
});

it("context list shows no password of a context that an earlier version stored", async () => {
  const folder = mkdtempSync(join(tmpdir(), "contexts-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "stele"));
  const [url, adminUrl] = ["https://me:secret@host/base", "https://me:pa#secret@host:1"];
  const parsed = ["https://me:12#secret@host", "https://me:12/secret@host"] as const; // The host is `me`, and 12 its port.
  const misread = { url: parsed[0], adminUrl: parsed[1] };
  const split = { url: "https://me:12/se/cret@host", adminUrl: "https://host:8443/@a" };
  const plain = { url: "https://host/a@b", adminUrl: "https://host:8443/a" };
  const contexts = { old: { url, adminUrl }, misread, split, plain };
  writeFileSync(join(folder, "stele/contexts.json"), JSON.stringify({ contexts }));
  const { code, stdout } = await run(["context", "list"], { env: { XDG_CONFIG_HOME: folder } });
  expect(code).toBe(0);
  expect(stdout.map((text) => JSON.parse(text) as unknown)).toEqual([
    { name: "old", isCurrent: false, url: "https://…@host/base", adminUrl: "https://…@host:1", hasKey: false },
    { name: "misread", isCurrent: false, url: "https://…@host", adminUrl: "https://…@host", hasKey: false },
    { name: "split", isCurrent: false, url: "https://…@host", adminUrl: "https://…@a", hasKey: false },
    { name: "plain", isCurrent: false, ...plain, hasKey: false },
  ]);
});

it("refuses a context with a blank group, with which subs pause --all would pause the subscriptions of all groups", async () => {
  const folder = mkdtempSync(join(tmpdir(), "contexts-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const env = { XDG_CONFIG_HOME: folder };
  const wrongUsage = { code: 2, stderr: expect.stringContaining("the group of --group or the context is blank") };
  for (const group of ["", " "]) {
    const argv = ["context", "add", "shop", "--url", "http://shop", "--group", group];
    expect(await run(argv, { env })).toMatchObject(wrongUsage);
    mkdirSync(join(folder, "stele"), { recursive: true });
    const contexts = { shop: { url: "http://shop", groupId: group } };
    writeFileSync(join(folder, "stele/contexts.json"), JSON.stringify({ current: "shop", contexts }));
    expect(await run(["subs", "pause", "--all"], { env })).toMatchObject(wrongUsage);
    rmSync(join(folder, "stele"), { recursive: true });
  }
  expect(sent).toEqual([]);
});
