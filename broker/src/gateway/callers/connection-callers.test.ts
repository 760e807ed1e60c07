import { once } from "node:events";
import { connect } from "node:net";
import { BrokerError } from "@stele/wire";
import { expect, it, vi } from "vitest";
import type { Caller, Owner, Principal } from "../../engine/access/caller.ts";
import { RuleSet } from "../../engine/access/rule-set.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { toPost } from "../testing/raw-http.ts";
import { serve } from "../testing/serve.ts";
import { whenClosed } from "../testing/when-closed.ts";

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
const json = { "content-type": "application/json" };
const rpc = (method: string, params: unknown) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

/** Denies every call. */
function refuse(): never {
  throw new BrokerError("accessDenied", { details: "x" });
}

it("passes the broker one caller per connection and protocol, with the client's address", async () => {
  const asked: [string, Caller][] = [];
  await using server = await serve(
    {
      authorize: (caller, action) => asked.push([action, caller]),
      health: (caller) => {
        asked.push(["health", caller]);
        return [];
      },
    },
    { chain: { read: () => Promise.resolve('"0x1"') } },
  );
  const { hostname, port } = new URL(server.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const call = (method: string, params: unknown) =>
    toPost("/jsonrpc", Buffer.from(rpc(method, params)), { ...json, connection: "keep-alive" });
  socket.write(get("/rest/publish?topic=a&content=b"));
  socket.write(get("/rest/state?topic=a"));
  socket.write(call("publish", { topic: "a", content: "" }));
  socket.write(call("state", { topic: "a" }));
  socket.write(get("/admin/skippedEntries"));
  socket.write(get("/admin/listSubscription"));
  socket.write(get("/health/ready"));
  socket.write(get("/metrics"));
  socket.end(toPost("/chain", Buffer.from(rpc("eth_blockNumber", [])), json));
  await once(socket.resume(), "close");
  const all = [...server.callers, ...asked.map(([, caller]) => caller)];
  expect(all).toHaveLength(10);
  const distinct = [...new Set(all)];
  expect(distinct.map(({ protocol }) => protocol).toSorted()).toEqual(["JSON-RPC", "REST", "admin", "chain"]);
  for (const { address, principal, signal } of distinct)
    expect([address, principal, signal.aborted]).toEqual(["127.0.0.1", { kind: "anonymous" }, true]);
  expect(asked.map(([action, { protocol }]) => `${protocol} asks for ${action}`).toSorted()).toEqual([
    "admin asks for administer",
    "admin asks for administer",
    "admin asks for health",
    "admin asks for inspect",
    "chain asks for chain",
  ]);
});

it("aborts the caller's signal when the connection ends, even during a call", async () => {
  const signals: AbortSignal[] = [];
  const ended = createDeferred<void>();
  await using server = await serve({
    open: async ({ signal }) => {
      signals.push(signal);
      expect(signal.aborted).toBe(false);
      signal.addEventListener("abort", () => ended.resolve());
      socket.destroy();
      await ended.promise;
      return true;
    },
  });
  const { hostname, port } = new URL(server.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(get("/rest/open?topic=a"));
  await ended.promise;
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

it("answers a caller without the right with 403 at /metrics and /health/ready, elsewhere with 200 and an error", async () => {
  await using server = await serve(
    {
      authorize: refuse,
      health: refuse,
      submit: refuse,
      state: async () => refuse(),
      listSkippedEntries: async () => refuse(),
    },
    { chain: { read: () => Promise.resolve('"0x1"') } },
  );
  const ask = async (path: string, body?: string) => {
    const response = await fetch(
      `${server.url}${path}`,
      body === undefined ? {} : { method: "POST", headers: json, body },
    );
    return [response.status, await response.json()];
  };
  const failure = { code: 100_702, message: "not allowed: x" };
  expect(await ask("/metrics")).toEqual([403, failure]);
  expect(await ask("/health/ready")).toEqual([403, failure]);
  expect(await ask("/admin/listSubscription")).toEqual([200, failure]);
  expect(await ask("/admin/skippedEntries")).toEqual([200, failure]);
  expect(await ask("/rest/publish?topic=a&content=b")).toEqual([200, failure]);
  expect(await ask("/rest/state?topic=a")).toEqual([200, failure]);
  expect(await ask("/jsonrpc", rpc("publish", { topic: "a", content: "" }))).toMatchObject([
    200,
    { error: { message: "not allowed" } },
  ]);
  expect(await ask("/chain", rpc("eth_blockNumber", []))).toMatchObject([200, { error: failure }]);
});

it("creates one caller for each credential of a connection, and authenticates a rejected one again", async () => {
  const asked: (string | undefined)[] = [];
  const principals = new Map<string | undefined, Principal>([
    ["one", known("one")],
    ["two", known("two")],
  ]);
  await using server = await serve({
    authenticate: (credential) => {
      asked.push(credential);
      return principals.get(credential) ?? { kind: "rejected", reason: "wrong" };
    },
  });
  const { hostname, port } = new URL(server.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const credentials = ["one", "one", "two", "one", "wrong", "wrong"];
  for (const credential of credentials) {
    socket.write(get("/rest/state?topic=a").replace("\r\n\r\n", `\r\nauthorization: Bearer ${credential}\r\n\r\n`));
  }
  socket.end(`GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  await once(socket.resume(), "close");
  const kinds = server.callers.map(({ principal }) => (principal.kind === "known" ? principal.id : principal.kind));
  expect(kinds).toEqual(["one", "one", "two", "one", "rejected", "rejected"]);
  expect(server.callers[0]).toBe(server.callers[3]);
  expect(asked).toEqual(["one", "two", "one", "wrong", "wrong"]);
});

const withHeaders = (request: string, headers: Readonly<Record<string, string>>): string =>
  request.replace(
    "\r\n\r\n",
    `\r\n${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("")}\r\n`,
  );

async function send(url: string, requests: readonly string[]): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  for (const request of requests) socket.write(request);
  // The client does not end its side: if it did, the server would abort the calls that it has not begun.
  socket.write(withHeaders(get("/"), { connection: "close" }));
  await once(socket.resume(), "close");
}

it.each([
  [["127.0.0.0/8"], ["192.0.2.7", "192.0.2.8", "192.0.2.7", "127.0.0.1"]],
  [["10.0.0.0/8"], ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"]],
  [[], ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"]],
])("with the trusted proxies %j, the callers have the addresses %j", async (trustedProxies, addresses) => {
  const origins: (string | undefined)[] = [];
  const rejected: Principal = { kind: "rejected", reason: "wrong" };
  const operations = {
    authenticate: (_: string | undefined, { address }: { readonly address: string | undefined }): Principal => {
      origins.push(address);
      return rejected;
    },
  };
  await using server = await serve(operations, { trustedProxies });
  const ask = withHeaders(get("/rest/state?topic=a"), { authorization: "Bearer x" });
  const forwarded = ["192.0.2.7", "192.0.2.8", "192.0.2.7"].map((address) =>
    withHeaders(ask, { "x-forwarded-for": address }),
  );
  await send(server.url, [...forwarded, ask]);
  expect(server.callers.map(({ address }) => address)).toEqual(addresses);
  expect(origins).toEqual(addresses);
});

it("ends a connection that has given too many wrong credentials, without an answer", async () => {
  const rejected: Principal = { kind: "rejected", reason: "too many", isClosed: true };
  await using server = await serve({ authenticate: () => Promise.resolve(rejected) });
  const { hostname, port } = new URL(server.url);
  const socket = connect({ host: hostname, port: Number(port) });
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const closed = whenClosed(socket);
  socket.write(withHeaders(get("/rest/state?topic=a"), { authorization: "Bearer x" }));
  await closed;
  expect([text, server.calls]).toEqual(["", []]);
});

it("caches a hundred callers of one connection, and drops all of them after one more", async () => {
  const principals = new Map<string, Principal>();
  await using server = await serve({
    authenticate: (credential = "") => {
      const principal = principals.get(credential) ?? known(credential);
      principals.set(credential, principal);
      return principal;
    },
  });
  const names = ["first", ...Array.from({ length: 99 }, (_, index) => String(index)), "first", "one more", "first"];
  const requests = names.map((name) => withHeaders(get("/rest/state?topic=a"), { authorization: `Bearer ${name}` }));
  await send(server.url, requests);
  expect(server.callers).toHaveLength(103);
  expect(server.callers[100]).toBe(server.callers[0]);
  expect(server.callers[102]).not.toBe(server.callers[0]);
});

it("adds only one listener for the end of a connection, even if a proxy sends the requests of many clients over it", async () => {
  const warned = vi.spyOn(process, "emitWarning");
  await using server = await serve({}, { trustedProxies: ["127.0.0.0/8"] });
  const requests = Array.from({ length: 20 }, (_, index) =>
    withHeaders(get("/rest/list"), { "x-forwarded-for": `192.0.2.${index}` }),
  );
  await send(server.url, requests);
  expect(new Set(server.callers).size).toBe(20);
  expect(warned).not.toHaveBeenCalled(); // Node warns of more than ten listeners of one event.
  warned.mockRestore();
});

function known(id: string): Principal {
  const none = { tenant: undefined, rules: new RuleSet([]), expiresAt: undefined, keyId: undefined };
  return { kind: "known", id: id as Owner, ...none };
}
