import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { formatEventId } from "@stele/wire";
import { describe, expect, it, vi } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { pipelinedRunningMax, pipelinedWaitingMax, rpcAnswerBytesMax, rpcBatchMax, smallBytesMax } from "../limits.ts";
import { answer, post } from "../testing/rpc-client.ts";
import { bodyOf, sendRaw, toPost } from "../testing/raw-http.ts";
import { serve, testBodyBytesMax, testMetrics } from "../testing/serve.ts";

const eventId = formatEventId({ topicDigest: "2cf24dba", sequence: 1, blockNumber: 1 });
const toEvent = (bytes: number) => ({ topic: "a", content: Buffer.alloc(bytes), extensions: [], eventId }) as never; // The fields that answers use.
const call = (method: string, id?: number) => ({ jsonrpc: "2.0", id, method, params: { eventId, topic: "a" } });

interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly data: { readonly code: number } };
}

function open(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect({ host: hostname, port: Number(port) });
}

describe("the answer to a batch", () => {
  it("has a size limit: members beyond it get 200300 and do not run, but notifications run", async () => {
    let count = 0;
    const getEvent = () => {
      count += 1;
      return Promise.resolve(toEvent(65_536));
    };
    await using server = await serve({ getEvent });
    const reads = Array.from({ length: rpcBatchMax - 2 }, (_, id) => call("getEvent", id));
    const answers = (await answer(server.url, [...reads, call("open", 1000), call("close")])) as readonly RpcAnswer[]; // A batch gets a list.
    expect(JSON.stringify(answers).length).toBeLessThan(rpcAnswerBytesMax + 300 * rpcBatchMax);
    expect(answers[0]).toHaveProperty("result");
    expect(answers.at(-1)?.error).toMatchObject({ code: -32001, data: { code: 200300 } });
    expect(server.calls.map(({ operation }) => operation)).toEqual(["close"]);
    expect(count).toBeLessThan(rpcAnswerBytesMax / 65_536 + 20);
  });

  it("reports the result of every change, even beyond the size limit", async () => {
    const read = createDeferred<boolean>();
    await using server = await serve({
      getEvent: () => Promise.resolve(toEvent(rpcAnswerBytesMax)),
      open: () => read.promise,
    });
    const asked = answer(server.url, [call("open", 1), call("getEvent", 2), call("getEvent", 3)]);
    setImmediate(() => read.resolve(true));
    const answers = (await asked) as readonly RpcAnswer[]; // A batch gets a list.
    expect(answers[0]).toEqual({ jsonrpc: "2.0", id: 1, result: "true" });
  });

  it("holds a single event in full, even one over the size limit", async () => {
    await using server = await serve({ getEvent: () => Promise.resolve(toEvent(2 * rpcAnswerBytesMax)) });
    const text = await (await post(server.url, [call("getEvent", 1)])).text();
    expect(text.length).toBeGreaterThan(2 * rpcAnswerBytesMax);
    expect(JSON.parse(text)).toMatchObject([{ id: 1, result: { eventId } }]);
  });

  it("is abandoned when the client disconnects: no further members run", async () => {
    const [began, go] = [createDeferred<void>(), createDeferred<void>()];
    let count = 0;
    await using server = await serve({
      getProof: async () => {
        count += 1;
        began.resolve();
        await go.promise;
        throw new Error("not needed");
      },
    });
    const body = JSON.stringify(Array.from({ length: rpcBatchMax }, (_, id) => call("getProof", id)));
    const socket = open(server.url);
    socket.write(toPost("/jsonrpc", Buffer.from(body), { "content-type": "application/json" }));
    await began.promise;
    socket.resetAndDestroy();
    await once(socket, "close");
    // Another request is answered after the server has seen the end of that connection.
    await answer(server.url, call("open", 1));
    go.resolve();
    await server.close();
    expect(count).toBeLessThan(10);
  });
});

it("drops the answer to a client that has disconnected, without an error in the log", async () => {
  const [began, go] = [createDeferred<void>(), createDeferred<void>()];
  const getEvent = async () => {
    began.resolve();
    await go.promise;
    return toEvent(2 * smallBytesMax);
  };
  const server = await serve({ getEvent });
  const socket = open(server.url);
  const body = Buffer.from(JSON.stringify([call("getEvent", 1)]));
  socket.write(toPost("/jsonrpc", body, { "content-type": "application/json" }));
  await began.promise;
  socket.resetAndDestroy();
  await answer(server.url, call("open", 1)); // By then the server has seen the end of the connection.
  go.resolve();
  await answer(server.url, call("open", 1));
  await server.close();
  expect(server.errors).toEqual([]);
});

describe("bodies", () => {
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const chunked =
    "POST /rest/open HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";

  it("in thousands of tiny chunks get 200300", async () => {
    await using server = await serve();
    expect(await sendRaw(server.url, [chunked, "1\r\nx\r\n".repeat(5000)])).toContain('"code":200300');
  });

  it("are refused while others fill the memory, unless they are small", async () => {
    const gate = createDeferred<boolean>();
    const began = createDeferred<void>();
    const open_ = (): Promise<boolean> => {
      began.resolve();
      return gate.promise;
    };
    await using server = await serve({ open: open_ }, { memoryInFlightBytesMax: testBodyBytesMax });
    const long = toPost("/rest/open", Buffer.from(`topic=a&x=${"x".repeat(150_000)}`), form);
    const first = sendRaw(server.url, [long]);
    await began.promise;
    expect(await sendRaw(server.url, [long])).toContain('"code":200300');
    expect(await answer(server.url, call("exist", 1))).toMatchObject({ result: "true" });
    gate.resolve(true);
    expect(await first).toMatch(/true$/);
  });

  it("release their memory with the answer", async () => {
    let read: (() => number) | undefined;
    const metrics = { ...testMetrics, watchBytesInFlight: (one: () => number) => (read = one) };
    await using server = await serve({ open: async () => (held = read?.() ?? 0) > 0 }, { metrics });
    let held = 0;
    await sendRaw(server.url, [toPost("/rest/open", Buffer.from(`topic=a&x=${"x".repeat(100_000)}`), form)]);
    expect(held).toBeGreaterThanOrEqual(100_000);
    expect(read?.()).toBe(0);
  });
});

describe("pipelined requests", () => {
  it("run a few at a time until all are done", async () => {
    const gate = createDeferred<void>();
    let running = 0;
    let runningMost = 0;
    const count = 3 * pipelinedRunningMax;
    const all = createDeferred<void>();
    await using server = await serve({
      open: async () => {
        running += 1;
        runningMost = Math.max(runningMost, running);
        if (running === pipelinedRunningMax + 1) setImmediate(() => gate.resolve());
        await gate.promise;
        running -= 1;
        return true;
      },
    });
    const socket = open(server.url);
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.match(/\r\n\r\ntrue/g)?.length === count) all.resolve();
    });
    socket.write("GET /rest/open?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(count));
    await all.promise;
    socket.destroy();
    expect(runningMost).toBe(pipelinedRunningMax + 1);
  });

  it("close their connection if too many wait", async () => {
    const reasons: string[] = [];
    const metrics = { ...testMetrics, connectionEnded: (reason: string) => void reasons.push(reason) };
    await using server = await serve({ open: () => new Promise(() => {}) }, { metrics, closeDeadlineMs: 100 });
    const get = "GET /rest/open?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n";
    const most = 1 + pipelinedRunningMax + pipelinedWaitingMax;
    const [patient, greedy] = [open(server.url), open(server.url)];
    const isEnded = new Promise((resolve) => greedy.on("error", resolve));
    patient.write(get.repeat(most));
    greedy.write(get.repeat(most + 1));
    await isEnded;
    expect(reasons).toEqual(["memory"]);
    expect(patient.destroyed).toBe(false);
    patient.destroy();
  });

  it("count the answer to a batch against the memory, even if each of its members is short", async () => {
    const gate = createDeferred<boolean>();
    let held: (() => number) | undefined;
    const metrics = { ...testMetrics, watchBytesInFlight: (read: () => number) => void (held = read) };
    await using server = await serve({ open: () => gate.promise }, { metrics });
    const invalid = Buffer.from(JSON.stringify(Array.from({ length: rpcBatchMax }, (_, id) => ({ id }))));
    const batch = toPost("/jsonrpc", invalid, { "content-type": "application/json" });
    const first = Buffer.from("GET /rest/open?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n");
    const answers = sendRaw(server.url, [Buffer.concat([first, batch])]);
    await vi.waitFor(() => expect(held?.()).toBeGreaterThan(100_000), { timeout: 30_000 });
    gate.resolve(true);
    expect(bodyOf(bodyOf(await answers)).length).toBeGreaterThan(100_000);
    expect(held?.()).toBe(0);
  });

  it("count short answers against the memory while an earlier answer is pending", async () => {
    const [gate, answered] = [createDeferred<boolean>(), createDeferred<void>()];
    let held: (() => number) | undefined;
    const metrics = { ...testMetrics, watchBytesInFlight: (read: () => number) => void (held = read) };
    const getEvent = () => {
      setImmediate(() => answered.resolve());
      return Promise.resolve(toEvent(smallBytesMax / 2));
    };
    await using server = await serve({ getEvent, open: () => gate.promise }, { metrics });
    const socket = open(server.url);
    const get = `GET /rest/getEvent?eventId=${eventId} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`;
    socket.write(`GET /rest/open?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n${get}`);
    await answered.promise;
    expect(held?.()).toBeGreaterThan(smallBytesMax / 2);
    gate.resolve(true);
    await once(socket.resume(), "close");
    expect(held?.()).toBe(0);
  });
});

describe("the listing of subscriptions", () => {
  it("counts against the memory until its client has read it", async () => {
    let held: (() => number) | undefined;
    const metrics = { ...testMetrics, watchBytesInFlight: (read: () => number) => void (held = read) };
    const delivery = { kind: "webhook", format: "RESTful" };
    const subscription = { id: "a".repeat(1000), filter: "a", delivery, notifiedAt: 0 };
    const nodes = [{ address: "node:1", subscriptions: Array.from({ length: 8000 }, () => subscription) }];
    await using server = await serve({ listSubscriptions: () => Promise.resolve(nodes as never) }, { metrics }); // The fields that the listing uses.
    const socket = open(server.url).pause();
    socket.write("GET /admin/listSubscription HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    await vi.waitFor(() => expect(held?.()).toBeGreaterThan(16_000_000), { timeout: 30_000 });
    await once(socket.resume(), "close");
    expect(held?.()).toBe(0);
  });
});
