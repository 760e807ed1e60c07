import { BrokerError, type ErrorName, errorCatalogue } from "@stele/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { sendRaw } from "../testing/raw-http.ts";
import { post } from "../testing/rpc-client.ts";
import { type Served, serve } from "../testing/serve.ts";

const ending = [200201, 200205, 200207, 200208, 200209, 200300];

const open = { jsonrpc: "2.0", id: 1, method: "open", params: { topic: "a" } };
const asks: readonly (readonly [string, (url: string) => Promise<Response>])[] = [
  ["REST", (url) => fetch(`${url}/rest/open?topic=a`)],
  ["JSON-RPC", (url) => post(url, open)],
  ["a batch of JSON-RPC", (url) => post(url, [{ ...open, method: "exist" }, open])],
];

describe.each(asks)("%s", (_what, ask) => {
  let failure: BrokerError;
  let server: Served;
  beforeAll(async () => {
    server = await serve({ open: () => Promise.reject(failure), exist: () => Promise.resolve(true) });
  });
  afterAll(async () => server.close());

  it.each(Object.entries(errorCatalogue))(
    "closes the connection after an answer with the error %s if and only if another node may succeed",
    async (name, { code }) => {
      failure = new BrokerError(name as ErrorName); // A key of the catalogue.
      const response = await ask(server.url);
      expect(response.headers.get("connection")).toBe(ending.includes(code) ? "close" : "keep-alive");
      expect(await response.text()).toContain(String(code));
    },
  );
});

const get = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;

it("keeps the connection open after an error while later pipelined requests wait for their answers", async () => {
  const exists = createDeferred<boolean>();
  await using server = await serve({
    open: async () => {
      await exists.promise;
      throw new BrokerError("busy");
    },
    exist: () => {
      exists.resolve(true);
      return exists.promise;
    },
  });
  const both = get("/rest/open?topic=a") + get("/rest/exist?topic=a", "connection: close\r\n");
  const answers = await sendRaw(server.url, [both]);
  expect(answers.match(/HTTP\/1.1 200/g)).toHaveLength(2);
  expect(answers).toContain("200300");
});
