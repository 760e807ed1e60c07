import { EventEmitter, once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, it, vi } from "vitest";
import { readBlockHash } from "./block-hash.ts";

const hash = `0x${"AB".repeat(32)}`;
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanups.splice(0)) cleanUp();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`; // It listens on a port.
}

it("readBlockHash returns the hash that eth_getBlockByNumber gives, in lower case", async () => {
  let body = "";
  const url = await serve((request, response) => {
    request.on("data", (data) => (body += String(data)));
    request.on("end", () => response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { hash } })));
  });
  expect(await readBlockHash(url, 31)).toBe(hash.toLowerCase());
  expect(JSON.parse(body)).toMatchObject({ method: "eth_getBlockByNumber", params: ["0x1f", false] });
});

it("readBlockHash reads the hash of a block with thousands of transactions", async () => {
  const transactions = Array.from({ length: 5_000 }, () => hash);
  const url = await serve((_request, response) => response.end(JSON.stringify({ result: { transactions, hash } })));
  expect(await readBlockHash(url, 1)).toBe(hash.toLowerCase());
});

it.each([
  "no JSON",
  "null",
  "[]",
  '{"result": null}',
  '{"result": {"hash": "0x12"}}',
  `{"result": {"hash": "${hash}", "x": "${"y".repeat(5_000_000)}"}}`,
])("readBlockHash throws if the node answers %.40s", async (answer) => {
  const url = await serve((_request, response) => response.end(answer));
  await expect(readBlockHash(url, 1)).rejects.toThrow("gives no hash of block 1");
});

it("readBlockHash throws if the node redirects to another address", async () => {
  const other = await serve((_request, response) => response.end(JSON.stringify({ result: { hash } })));
  const url = await serve((_request, response) => response.writeHead(307, { location: other }).end());
  await expect(readBlockHash(url, 1)).rejects.toThrow();
});

it("an aborted readBlockHash closes its connection to a node that stalls in the middle of its answer, even after a garbage collection", async () => {
  const connection = new EventEmitter();
  const closed = once(connection, "close");
  const url = await serve((_request, response) => {
    response.on("close", () => connection.emit("close"));
    response.write('{"result":');
  });
  const send = globalThis.fetch;
  const answerBegun = new Promise<void>((resolve) => {
    vi.stubGlobal("fetch", async (...request: Parameters<typeof fetch>) => {
      const response = await send(...request);
      setImmediate(resolve);
      return response;
    });
  });
  cleanups.push(() => void vi.unstubAllGlobals());
  const controller = new AbortController();
  const reading = expect(readBlockHash(url, 1, { signal: controller.signal })).rejects.toThrow("enough");
  await answerBegun;
  collectGarbage();
  controller.abort(new Error("enough"));
  await reading;
  await closed;
});

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
}
