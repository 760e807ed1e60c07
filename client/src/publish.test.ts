import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { type Content, Stele, type SteleError } from "./index.ts";

const url = "http://broker.example";

/** A `fetch` that answers each request with the next turn, and repeats the last turn for further requests. A turn that is an Error fails the connection. */
function network(...turns: readonly (Error | ((bodies: readonly RpcBody[]) => unknown))[]): typeof fetch {
  let requests = 0;
  return async (input, init) => {
    const body: unknown = await new Request(input, init).json();
    const turn = turns[Math.min(requests, turns.length - 1)];
    requests += 1;
    if (typeof turn !== "function") throw turn;
    const isBatch = Array.isArray(body);
    const answer = turn([body].flat() as readonly RpcBody[]); // As the client wrote it.
    return Response.json(isBatch ? answer : [answer].flat()[0]);
  };
}

interface RpcBody {
  readonly id: number;
}

function failing(code: number) {
  return (bodies: readonly RpcBody[]) =>
    bodies.map(({ id }) => ({
      jsonrpc: "2.0",
      id,
      error: { code: -32000, message: "no", data: { code, message: "no" } },
    }));
}

const lost = new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
const closed = new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
const unreachable = new TypeError("fetch failed", { cause: { code: "EHOSTUNREACH", syscall: "connect" } });
const unreachables = new TypeError("fetch failed", { cause: new AggregateError([]) });
const broken = new TypeError("fetch failed", { cause: { code: "EHOSTUNREACH", syscall: "read" } });
const untrusted = new TypeError("fetch failed", { cause: { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" } });
const blocked = new TypeError("fetch failed", { cause: new Error("bad port") });
const plain = new TypeError("fetch failed", { cause: { code: "ERR_SSL_WRONG_VERSION_NUMBER" } });

describe.each<[string, (stele: Stele) => Promise<unknown>]>([
  ["publish", (stele) => stele.publish("t", "x", { once: "key" })],
  [
    "publishMany",
    async (stele) => {
      const [outcome] = await stele.publishMany([{ topic: "t", content: "x", once: "key" }]);
      if (outcome?.status === "failed") throw outcome.error;
    },
  ],
])("a failed %s", (_name, publish) => {
  it.each([
    ["that could not connect", true, [closed]],
    ["to a host without a route", true, [unreachable]],
    ["to a name without an address that answers", true, [unreachables]],
    ["whose connection broke", false, [broken]],
    ["that refused the certificate", true, [untrusted]],
    ["that asked for TLS where there is none", true, [plain]],
    ["to a port to which fetch never connects", true, [blocked]],
    ["that lost its answer, then could not connect", false, [lost, closed]],
    ["that lost its answer, then met a busy broker", false, [lost, failing(200300)]],
    ["that timed out, then could not connect", false, [failing(200201), closed]],
    ["whose topic does not exist", true, [failing(100101)]],
    ["that lost its answer, then met a closed topic", false, [lost, failing(100112)]],
    ["with an unknown error of the broker", false, [failing(200000)]],
  ])("a publish %s throws an error with wasRefused: %s", async (...[, wasRefused, turns]) => {
    const stele = new Stele({ url, fetch: network(...turns), retries: turns.length - 1 });
    await expect(publish(stele)).rejects.toMatchObject({ wasRefused });
  });

  it("if a publish fails after a try with an unknown outcome, it throws the message, code and cause of the last try", async () => {
    const stele = new Stele({ url, fetch: network(lost, closed), retries: 1 });
    await expect(publish(stele)).rejects.toMatchObject({
      message: `${url} does not answer (ECONNREFUSED)`,
      name: "SteleError",
      code: undefined,
      retry: true,
      cause: closed,
    } satisfies Partial<SteleError>);
  });
});

describe("publishMany", () => {
  const bodyBytesMax = 1024 ** 2;

  it.each([
    ["contents", { content: "x".repeat(900) }],
    ["extensions beyond ASCII", { content: "x", extensions: { "svc-n": "事".repeat(600) } }],
    ["extensions that JSON escapes", { content: "x", extensions: { "svc-n": "\u0001".repeat(300) } }],
  ])("publishMany splits events with long %s into requests below 1 MiB", async (_what, publication) => {
    const bodies: number[] = [];
    const fetch: typeof globalThis.fetch = async (input, init) => {
      bodies.push((await new Request(input, init).arrayBuffer()).byteLength);
      throw closed;
    };
    const publications = Array.from({ length: 1_000 }, () => ({ topic: "t", ...publication }));
    await new Stele({ url, fetch, retries: 0 }).publishMany(publications);
    expect(bodies.length).toBeGreaterThan(1);
    expect(Math.max(...bodies)).toBeLessThan(bodyBytesMax);
  });

  it("publishMany halves each request that is too long for the broker, and keeps the order of the events", async () => {
    const sizes: number[] = [];
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const calls = (await new Request(input, init).json()) as readonly RpcBody[]; // As the client wrote it.
      sizes.push(calls.length);
      const data = { code: 200001, message: "the request body is over 20000 bytes" };
      if (calls.length > 3)
        return Response.json({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "", data } });
      const result = (id: number) => ({ topic: "t", eventId: `${sizes.length}-${id}`, status: "SUCCESS" });
      return Response.json(calls.map(({ id }) => ({ jsonrpc: "2.0", id, result: result(id) })));
    };
    const publications = Array.from({ length: 10 }, () => ({ topic: "t", content: "x" }));
    const outcomes = await new Stele({ url, fetch, retries: 0 }).publishMany(publications);
    const eventIds = outcomes.map((outcome) =>
      outcome.status === "published" ? outcome.eventId : outcome.error.message,
    );
    expect(eventIds).toEqual(["3-0", "3-1", "3-2", "4-0", "4-1", "6-0", "6-1", "6-2", "7-0", "7-1"]);
    expect(sizes).toEqual([10, 5, 3, 2, 5, 3, 2]);
  });

  it("publishMany gives each event the error of the broker if the broker refuses the whole request", async () => {
    const data = { code: 200001, message: "no" };
    let requests = 0;
    const fetch = async () => {
      requests += 1;
      return Response.json({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "", data } });
    };
    const outcomes = await new Stele({ url, fetch }).publishMany([1, 2, 3].map(() => ({ topic: "t", content: "x" })));
    expect(outcomes).toMatchObject(
      [1, 2, 3].map(() => ({ status: "failed", error: { code: 200001, wasRefused: true } })),
    );
    expect(requests).toBe(1);
  });
});

async function contentSentBy(content: Content): Promise<string> {
  const sent: string[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const { params } = (await new Request(input, init).json()) as { params: { content: string } }; // As the client wrote it.
    sent.push(atob(params.content));
    throw closed;
  };
  await expect(new Stele({ url, fetch, retries: 0 }).publish("t", content)).rejects.toMatchObject({
    wasRefused: true,
  });
  return sent[0] ?? "";
}

describe("the content of a publish", () => {
  it.each<[string, object]>([
    ["a promise", Promise.resolve({ n: 1 })],
    ["a map", new Map([["n", 1]])],
    ["a blob", new Blob(["x"])],
    ["an instance without fields", new URLSearchParams("n=1")],
  ])("publish throws TypeError for content that is %s, which JSON writes as {}", async (_, content) => {
    await expect(new Stele({ url, fetch: network(closed) }).publish("t", content)).rejects.toThrow(TypeError);
  });

  it.each<[string, object]>([
    ["{}", {}],
    ["{}", Object.create(null) as object],
    ["{}", runInNewContext("({})") as object],
    ["[]", []],
    [
      '{"n":1}',
      new (class Numbered {
        n = 1;
      })(),
    ],
    ['"2026-01-01T00:00:00.000Z"', new Date("2026-01-01")],
  ])("publish sends the JSON %s for an object", async (text, content) => {
    expect(await contentSentBy(content)).toBe(text);
  });

  it("publish sends the bytes of a buffer, even of another realm or of shared memory", async () => {
    expect(await contentSentBy(runInNewContext("Uint8Array.of(65, 66).buffer") as ArrayBuffer)).toBe("AB");
    expect(await contentSentBy(new SharedArrayBuffer(1))).toBe("\0");
  });
});
