import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { runCli } from "./run-cli.ts";

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
    const path = new URL(input).pathname;
    if (path !== "/jsonrpc") {
      sent.push(path);
      return Response.json({ items: ["a", "b", "c"].map((id) => ({ id, events: 1 })) });
    }
    const body: unknown = await new Response(init.body).json();
    const answers = ([body].flat() as readonly RpcBody[]).map(answer); // As the client wrote it.
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
  let [stdout, stderr] = ["", ""];
  const io = {
    env: { XDG_CONFIG_HOME: "/nowhere" },
    home: "/nowhere",
    stdin: (async function* () {
      yield* ["1\n", "2\n", "3\n"];
    })(),
    stdout: {
      write: (text: string | Uint8Array, done: (error?: Error) => void) => {
        if (stdout !== "") return done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
        stdout += String(text);
        done();
      },
    },
    stderr: {
      write: (text: string | Uint8Array, done: () => void) => {
        stderr += String(text);
        done();
      },
    },
    signal: new AbortController().signal,
    loadSettings: () => Promise.reject(new Error("no settings")),
  };
  const code = await runCli([...argv, "-o", "ndjson"], io, "test");
  return { code, stderr };
}

it.each([
  ["pub", ["pub", "t"], ["publish t", "publish t"]],
  ["topics open", ["topics", "open", "a", "b", "c"], ["open a", "open b"]],
  ["subs pause", ["subs", "pause", "--all"], ["/admin/v1/subscriptions/pause"]],
])("%s fails if it ends early because nothing reads its output", async (_, argv, done) => {
  expect(await runClosed(...argv)).toEqual({
    code: 1,
    stderr: "stele: nothing reads the output any more: the command ended early, and may have done a part only\n",
  });
  expect(sent).toEqual(done);
});

it.each([
  ["topics list", ["topics", "list"]],
  ["subs pause --dry-run", ["subs", "pause", "--all", "--dry-run"]],
])("%s, which changes nothing, ends without an error if nothing reads its output", async (_, argv) => {
  expect(await runClosed(...argv)).toEqual({ code: 0, stderr: "" });
});
