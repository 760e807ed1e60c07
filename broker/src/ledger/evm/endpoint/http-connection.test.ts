import type { Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import { EndpointAddress } from "./address.ts";
import { HttpConnection } from "./http-connection.ts";
import { FakeNode } from "./testing/fake-node.ts";

let node: FakeNode;
let connection: HttpConnection;
let lost: string[];

beforeEach(async () => {
  node = await FakeNode.start();
  lost = [];
  connection = new HttpConnection(new EndpointAddress(node.url()), {
    clock: createSystemClock(),
    timeoutMs: 20_000,
    events: { onNotification: () => {}, onLost: (reason) => lost.push(reason) },
  });
});
afterEach(async () => {
  await connection.close();
  await node[Symbol.asyncDispose]();
});

test.each(["HTTP/1.1 200 OK\r\nconnection: close", "HTTP/1.0 200 OK", "HTTP/1.1 200 OK\r\nkeep-alive: timeout=1"])(
  "does not report the close of a connection that its answer announced: %j",
  async (head) => {
    const closed = createDeferred<void>();
    const body = '{"jsonrpc":"2.0","id":1,"result":"a"}';
    node.exchange = ({ socket }) => {
      socket.once("close", () => closed.resolve());
      socket.end(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    };
    expect(await connection.request({ method: "a" })).toBe("a");
    await closed.promise;
    expect(lost).toEqual([]);
  },
);

test.each(["destroy", "resetAndDestroy"] as const)(
  "reports a connection that is lost after the announced close of another one (%s)",
  async (lose) => {
    const held = createDeferred<Socket>();
    node.exchange = ({ socket }) => held.resolve(socket);
    const failure = connection.request({ method: "a" }).catch((error: unknown) => error);
    const socket = await held.promise;
    node.exchange = undefined;
    node.isClosing = true;
    expect(await connection.request({ method: "b" })).toBe("b");
    socket[lose]();
    expect(await failure).toMatchObject({ reach: "unknown" });
    expect(lost).toHaveLength(1);
  },
);

/** The number of requests for two calls at once; `exchange` answers the first. */
async function requestsOf(exchange?: FakeNode["exchange"]): Promise<number> {
  const before = node.requests.length;
  node.exchange = exchange;
  expect(await connection.requestAll([{ method: "a" }, { method: "b" }])).toEqual(["a", "b"]);
  return node.requests.length - before;
}

test.each([
  ["no answer", "[]"],
  ["an answer to one call", '[{"jsonrpc":"2.0","id":1,"result":"a"}]'],
  ["identifiers as texts", '[{"jsonrpc":"2.0","id":"1","result":"a"},{"jsonrpc":"2.0","id":"2","result":"b"}]'],
])("sends single requests after a batch got only %s, and no further batch after two in a row", async (_, text) => {
  const answerShort: FakeNode["exchange"] = (_request, response) => {
    node.exchange = undefined;
    response.end(text);
  };
  expect(await requestsOf(answerShort)).toBe(3);
  expect(await requestsOf()).toBe(1);
  expect(await requestsOf(answerShort)).toBe(3);
  expect(await requestsOf(answerShort)).toBe(3);
  expect(await requestsOf()).toBe(2);
});
