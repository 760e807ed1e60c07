import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { inspect } from "node:util";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Stele } from "./index.ts";

const url = "http://broker.example";

/** Records requests, and answers each with `answer`. */
function answering(answer: (request: Request) => Response) {
  const requests: Request[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    requests.push(request);
    return answer(request);
  };
  return { requests, fetch };
}

/** Publishes one event with a key by `publishMany`. @throws the error of its outcome. */
async function firstOutcome(stele: Stele): Promise<void> {
  const [outcome] = await stele.publishMany([{ topic: "t", content: "x", once: true }]);
  if (outcome?.status === "failed") throw outcome.error;
}

function hangs(): Promise<string> {
  return new Promise(() => {});
}

describe("a client", () => {
  it("the client does not follow a redirect, and throws an error that names the server that the redirect leads to", async () => {
    const headers = { location: "https://other.example/jsonrpc" };
    const { requests, fetch } = answering(() => new Response(null, { status: 301, headers }));
    const call = new Stele({ url, fetch, key: "k" }).exist("t");
    await expect(call).rejects.toMatchObject({ code: undefined, retry: false });
    await expect(call).rejects.toThrow("redirects to https://other.example");
    expect(requests).toHaveLength(1);
  });

  it("the client reads at most 64 MiB of an endless answer, and does not retry", async () => {
    const mebibyte = new Uint8Array(1024 * 1024);
    let sent = 0;
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => {
          sent += 1;
          controller.enqueue(mebibyte);
        },
      });
    const { requests, fetch } = answering(() => new Response(endless()));
    const call = new Stele({ url, fetch, retries: 1 }).exist("t");
    await expect(call).rejects.toMatchObject({ message: expect.stringContaining("67108864 bytes"), retry: false });
    expect(requests).toHaveLength(1);
    expect(sent).toBeLessThan(70);
  });

  it("the client reads the answer of a fetch that has no streams", async () => {
    const withoutStream = new Response('{"jsonrpc":"2.0","id":1,"result":true}');
    Object.defineProperty(withoutStream, "body", { value: undefined });
    const { fetch } = answering(() => withoutStream);
    expect(await new Stele({ url, fetch }).exist("t")).toBe(true);
  });

  it("the client does not retry after a redirect to an address that is not a URL", async () => {
    const { requests, fetch } = answering(() => new Response(null, { status: 302, headers: { location: "http://[" } }));
    const call = new Stele({ url, fetch, retries: 1 }).exist("t");
    await expect(call).rejects.toThrow("redirects to another address");
    expect(requests).toHaveLength(1);
  });

  it.each([
    ["a call", (stele: Stele) => stele.exist("t")],
    ["a publish with a key", (stele: Stele) => stele.publish("t", "x", { once: true })],
    ["publishMany", (stele: Stele) => firstOutcome(stele)],
    ["a tail", (stele: Stele) => stele.subscribe("t").opened()],
  ])("the client does not retry %s after it refused the broker's certificate", async (_what, call) => {
    const { requests, fetch } = answering(() => {
      throw new TypeError("fetch failed", { cause: { code: "CERT_HAS_EXPIRED" } });
    });
    await expect(call(new Stele({ url, fetch, retries: 1 }))).rejects.toMatchObject({ retry: false, wasRefused: true });
    expect(requests).toHaveLength(1);
  });

  it("the client retries a publish after the key function threw", async () => {
    const { requests, fetch } = answering(() =>
      Response.json({ jsonrpc: "2.0", id: 0, result: { topic: "t", eventId: "e", status: "SUCCESS" } }),
    );
    let tries = 0;
    const key = (): string => {
      tries += 1;
      if (tries === 1) throw new Error("the log-in server is down");
      return "fresh";
    };
    await new Stele({ url, fetch, key }).publish("t", "x", { once: true });
    expect(requests.map(({ headers }) => headers.get("authorization"))).toEqual(["Bearer fresh"]);
  });

  it("the client times out without a request when the key function never resolves", async () => {
    const { requests, fetch } = answering(() => new Response());
    const call = new Stele({ url, fetch, key: hangs, timeoutMs: 10, retries: 0 }).exist("t");
    await expect(call).rejects.toMatchObject({ retry: true, message: expect.stringContaining("in time") });
    expect(requests).toEqual([]);
  });

  it("the client waits an hour for the answer if timeoutMs is Infinity", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const answers: ((response: Response) => void)[] = [];
    const fetch: typeof globalThis.fetch = () => new Promise((resolve) => answers.push(resolve));
    const call = new Stele({ url, fetch, timeoutMs: Number.POSITIVE_INFINITY, retries: 0 }).exist("t");
    await vi.advanceTimersByTimeAsync(3_600_000);
    answers[0]?.(Response.json({ jsonrpc: "2.0", id: 0, result: "true" }));
    expect(await call).toBe(true);
  });

  it.each([
    ["a call", (stele: Stele, signal: AbortSignal) => stele.exist("t", { signal })],
    ["a tail", (stele: Stele, signal: AbortSignal) => stele.subscribe("t", { signal }).opened()],
  ])("the client ends %s when its signal is aborted, even if fetch never settles", async (_what, begin) => {
    const ending = new AbortController();
    const fetch: typeof globalThis.fetch = () => new Promise(() => ending.abort(new Error("the end")));
    await expect(begin(new Stele({ url, fetch }), ending.signal)).rejects.toThrow("the end");
  });

  it("the client adds one listener to a signal that many calls share, even while they wait to retry", async () => {
    const ending = new AbortController();
    const listening = vi.spyOn(ending.signal, "addEventListener");
    const answers = vi.fn<() => void>();
    const { fetch } = answering(() => {
      answers();
      return new Response("", { status: 503 });
    });
    const stele = new Stele({ url, fetch });
    const calls = Array.from({ length: 12 }, () => stele.exist("t", { signal: ending.signal }));
    await vi.waitFor(() => expect(answers).toHaveBeenCalledTimes(12), 30_000);
    ending.abort(new Error("the end"));
    for (const call of calls) await expect(call).rejects.toThrow("the end");
    expect(listening).toHaveBeenCalledOnce();
  });

  it("the client rejects a key or a place that no header can carry, and leaves the key out of the message", async () => {
    const { requests, fetch } = answering(() => new Response());
    const failure = await new Stele({ url, fetch, key: "secret\nkey" }).exist("t").catch(String);
    expect(failure).toContain("no header can carry");
    expect(failure).not.toContain("secret");
    const misplaced = new Stele({ url, fetch }).subscribe("t", { place: "€" }).opened();
    await expect(misplaced).rejects.toThrow("or the place has characters");
    expect(requests).toEqual([]);
  });

  it.each([
    ["a call", (stele: Stele) => stele.exist("t")],
    ["an admin call", (stele: Stele) => stele.admin.figures()],
    ["a request for rights", (stele: Stele) => stele.rights(), 1],
    ["a publish with a key", (stele: Stele) => stele.publish("t", "x", { once: true })],
    ["a publish without a key", (stele: Stele) => stele.publish("t", "x"), 1],
    ["publishMany", (stele: Stele) => firstOutcome(stele)],
  ])(
    "the client treats JSON of a proxy as an unknown outcome, and retries %s if a repeat is safe",
    async (_what, call, tries = 2) => {
      for (const body of [{ message: "no healthy upstream" }, { code: 504, message: "upstream timed out" }]) {
        const { requests, fetch } = answering(() => Response.json(body, { status: 504 }));
        await expect(call(new Stele({ url, fetch, retries: 1 }))).rejects.toMatchObject({
          code: undefined,
          retry: true,
          wasRefused: false,
        });
        expect(requests).toHaveLength(tries);
      }
    },
  );

  it.each([
    ["a call", (stele: Stele) => stele.exist("t"), `${url}/jsonrpc`],
    ["an admin call", (stele: Stele) => stele.admin.figures(), `${url}/admin/v1/figures`],
    ["a tail", (stele: Stele) => stele.subscribe("t").opened(), `${url}/tail?topic=t`],
  ])(
    "the client throws an error with the address of %s that gets no JSON, even from a custom fetch",
    async (_what, call, address) => {
      for (const [status, text] of [
        [502, `${address} answers with status 502`],
        [404, `${address} does not answer like a broker: status 404, no JSON`],
      ] as const) {
        const { fetch } = answering(() => new Response("<html>", { status }));
        await expect(call(new Stele({ url, fetch, retries: 0 }))).rejects.toThrow(text);
      }
    },
  );

  it.each([
    ["a call", (stele: Stele) => stele.exist("t"), 2],
    ["an admin call", (stele: Stele) => stele.admin.figures(), 2],
    ["a publish with a key", (stele: Stele) => stele.publish("t", "x", { once: true }), 2],
    ["a publish without a key", (stele: Stele) => stele.publish("t", "x"), 1],
  ])("the client retries %s after JSON that ends early, if a repeat is safe", async (_what, call, tries) => {
    const headers = { "content-type": "application/json; charset=utf-8" };
    const { requests, fetch } = answering(() => new Response('{"jsonrpc":"2.0","id":0,"res', { headers }));
    await expect(call(new Stele({ url, fetch, retries: 1 }))).rejects.toMatchObject({ retry: true, wasRefused: false });
    expect(requests).toHaveLength(tries);
  });

  it.each(["", '{"total":9,"topicInfoList":[{"topic":"a"}', '{"result":{"status":"SUCCESS"}', '["a", "b]'])(
    "the client treats %j as a part of an answer",
    async (text) => {
      const headers = { "content-type": "application/json" };
      const { fetch } = answering(() => new Response(text, { headers }));
      const stele = new Stele({ url, fetch, retries: 0 });
      await expect(stele.exist("t")).rejects.toMatchObject({ retry: true, message: expect.stringContaining("a part") });
    },
  );

  it.each(["OK", "{'status': 'up'}"])("the client says that the JSON %j is no broker's answer", async (text) => {
    const headers = { "content-type": "application/json" };
    const { requests, fetch } = answering(() => new Response(text, { headers }));
    for (const call of [(stele: Stele) => stele.exist("t"), (stele: Stele) => stele.admin.figures(), firstOutcome]) {
      await expect(call(new Stele({ url, fetch }))).rejects.toMatchObject({
        retry: false,
        message: expect.stringContaining("does not answer like a broker: status 200, no JSON"),
      });
    }
    expect(requests).toHaveLength(3);
  });

  it.each([
    ["a call", (stele: Stele) => stele.exist("t")],
    ["a tail", (stele: Stele) => stele.subscribe("t", { reconnectMsMax: 1 }).opened()],
  ])("if an answer to %s breaks off, the client suggests no other protocol", async (_, call) => {
    const server = createSocketServer((socket) =>
      socket.once("data", () =>
        socket.end(
          "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nno chunk\r\n",
        ),
      ),
    ).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // The address of a TCP server.
    const failure = call(new Stele({ url: origin, retries: 0 }));
    await expect(failure).rejects.toThrow(`the answer of ${origin} broke off (`);
    await expect(failure).rejects.not.toThrow("another protocol");
  });

  it.each<[string, (stele: Stele) => Promise<unknown>]>([
    ["a publish", (stele) => stele.publish("t", "x")],
    ["publishMany", firstOutcome],
    ["state", (stele) => stele.state("t")],
    ["a list of topics", (stele) => stele.topics().next()],
    ["a page of topics", (stele) => stele.list()],
    ["getEvent", (stele) => stele.getEvent("e")],
    ["a list for operators", (stele) => stele.admin.subscriptions().next()],
    ["an admin call", (stele) => stele.admin.figures()],
  ])("the client throws SteleError if a server answers %s with other JSON", async (_what, call) => {
    for (const body of [{ jsonrpc: "2.0", id: 0, result: null }, []]) {
      const { fetch } = answering((request) => Response.json(request.url.endsWith("/jsonrpc") ? body : [body]));
      await expect(call(new Stele({ url, fetch }))).rejects.toMatchObject({ name: "SteleError", retry: false });
    }
    const { fetch } = answering(() => Response.json({ status: "up" }));
    const list = new Stele({ url, fetch }).admin.subscriptions().next();
    await expect(list).rejects.toThrow(`${url} does not answer like a broker: an answer that is not a page of a list`);
  });

  it.each<[string, unknown, string, (stele: Stele) => Promise<unknown>]>([
    ["a publish", {}, "a publish result without status or eventId", (stele) => stele.publish("t", "x")],
    ["publishMany", {}, "a publish result without status or eventId", firstOutcome],
    [
      "a publish",
      { status: "SUCCESS" },
      "a publish result without status or eventId",
      (stele) => stele.publish("t", "x"),
    ],
    ["a list of topics", {}, "a result that is not a page of topics", (stele) => stele.topics().next()],
    ["a page of topics", {}, "a result that is not a page of topics", (stele) => stele.list()],
    ["state", "x", "a result that is not an object", (stele) => stele.state("t")],
    ["exist", {}, "a result that is not a boolean", (stele) => stele.exist("t")],
  ])("the client names the server that answers %s with the result %j", async (...[what, result, why, call]) => {
    const body = { jsonrpc: "2.0", id: 0, result };
    const { fetch } = answering(() => Response.json(what === "publishMany" ? [body] : body));
    await expect(call(new Stele({ url, fetch }))).rejects.toMatchObject({
      name: "SteleError",
      code: undefined,
      message: `${url} does not answer like a broker: ${why}`,
    });
  });

  it.each([
    ["the code", new TypeError("fetch failed", { cause: { code: "ECONNRESET" } }), "(ECONNRESET)"],
    ["the reason, if there is no code", new TypeError("fetch failed", { cause: new Error("odd") }), "(odd)"],
    ["no reason in a browser, which gives none", new TypeError("Failed to fetch"), "(no connection)"],
    [
      "the possible port of another protocol, if the answer is not HTTP",
      new TypeError("fetch failed", { cause: Object.assign(new Error("not HTTP"), { name: "HTTPParserError" }) }),
      "(not HTTP): it does not speak HTTP; is this the port of another protocol?",
    ],
  ])("if a connection fails, the client names %s", async (_, failure, text) => {
    const { fetch } = answering(() => {
      throw failure;
    });
    const call = new Stele({ url, fetch, retries: 0 }).publish("t", "x");
    await expect(call).rejects.toThrow(`${url} does not answer ${text}`);
  });

  it("the client does not say that there was no connection if an answer breaks off in a browser, which gives no reason", async () => {
    const { fetch } = answering(
      () =>
        new Response(new ReadableStream({ pull: (controller) => controller.error(new TypeError("network error")) })),
    );
    const call = new Stele({ url, fetch, retries: 0 }).exist("t");
    await expect(call).rejects.toThrow(`the answer of ${url} broke off (no reason given)`);
  });

  it("the client says that fetch does not connect to a port that the Fetch standard blocks, and does not try again", async () => {
    const blocked = new Stele({ url: "http://127.0.0.1:10080" });
    await expect(blocked.publish("t", "x", { once: true })).rejects.toMatchObject({
      retry: false,
      wasRefused: true,
      message:
        "http://127.0.0.1:10080 has a port to which fetch does not connect (bad port): let the broker listen on another",
    });
  });

  it("the client says that the server speaks HTTP if an https address leads to a plain HTTP server", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const address = server.address();
    const https = `https://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    const call = new Stele({ url: https, retries: 0 }).publish("t", "x");
    await expect(call).rejects.toMatchObject({
      wasRefused: true,
      message: expect.stringMatching(/: it speaks HTTP, not HTTPS$/),
    });
  });

  it.each(["url", "adminUrl"])(
    "the client refuses a %s with a password, and leaves the password out of the message",
    (name) => {
      const create = (): unknown => new Stele({ url, [name]: "http://user:secret@broker.example" });
      expect(create).toThrow(/^a URL with a user name or a password/);
    },
  );

  it.each(["https://me:pa#secret@host", "me:secret@host"])(
    "the client leaves the password of %s, which is not an http URL, out of its error",
    async (name) => {
      const create = async () => new Stele({ url: name });
      const error: unknown = await create().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TypeError);
      expect(inspect(error)).not.toContain("secret@");
    },
  );

  it("the client sends traceparent with each try", async () => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const { requests, fetch } = answering(() => new Response("", { status: 503 }));
    await expect(new Stele({ url, fetch, retries: 1 }).exist("t", { traceparent })).rejects.toMatchObject({
      retry: true,
    });
    expect(requests.map(({ headers }) => headers.get("traceparent"))).toEqual([traceparent, traceparent]);
  });
});

/** Publishes `content`, and returns the content and the extensions in the request. */
async function sent(content: object | string, extensionPrefix?: string): Promise<readonly [string, unknown]> {
  const { requests, fetch } = answering(() =>
    Response.json({ jsonrpc: "2.0", id: 0, result: { topic: "t", eventId: "e", status: "SUCCESS" } }),
  );
  await new Stele({ url, fetch, extensionPrefix }).publish("t", content);
  const body = (await requests[0]?.json()) as { params: { content: string; extensions?: unknown } }; // As it was sent.
  return [Buffer.from(body.params.content, "base64").toString(), body.params.extensions];
}

describe("publish", () => {
  it.each<[string, string | object, string, unknown]>([
    ["a text", "ü", "ü", undefined],
    ["bytes", Buffer.from("bytes"), "bytes", undefined],
    ["a buffer", new Uint8Array(Buffer.from("buffer")).buffer, "buffer", undefined],
    ["a view of part of a buffer", new DataView(new Uint8Array(Buffer.from("a view")).buffer, 2), "view", undefined],
    ["an object", { a: 1 }, '{"a":1}', { "svc-format": "json" }],
    ["an array", [1], "[1]", { "svc-format": "json" }],
  ])("publish sends the bytes of %s, with svc-format only for JSON", async (...[, content, text, extensions]) => {
    expect(await sent(content)).toEqual([text, extensions]);
  });

  it("publish marks JSON with an extension that has the client's extension prefix", async () => {
    expect(await sent([1], "acme.")).toEqual(["[1]", { "acme.format": "json" }]);
  });

  it("publish throws TypeError for content that JSON cannot express", async () => {
    await expect(sent(() => {})).rejects.toThrow(TypeError);
    const cycle: { self?: object } = {};
    cycle.self = cycle;
    await expect(sent(cycle)).rejects.toThrow(TypeError);
  });
});
