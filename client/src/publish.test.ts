import { describe, expect, it } from "vitest";
import { Stele, type SteleError } from "./index.ts";

const url = "http://broker.example";

/** A network that gives each answer in its turn, and the last one for ever: an error is a connection that fails. */
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
    ["that no broker got", [closed], true],
    ["whose answer was lost before nothing listened", [lost, closed], false],
    ["whose answer was lost before the broker was busy", [lost, failing(200300)], false],
    ["that timed out before nothing listened", [failing(200201), closed], false],
    ["whose topic does not exist", [failing(100101)], true],
    ["whose answer was lost before its topic was closed", [lost, failing(100112)], false],
    ["that the broker cannot explain", [failing(200000)], false],
  ])("%s says whether it was refused", async (...[, turns, wasRefused]) => {
    const stele = new Stele({ url, fetch: network(...turns), retries: turns.length - 1 });
    await expect(publish(stele)).rejects.toMatchObject({ wasRefused });
  });

  it("keeps the code, the text and the cause of its last error after a doubtful one", async () => {
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

describe("many events", () => {
  const bodyBytesMax = 1024 ** 2;

  it.each([
    ["contents", { content: "x".repeat(900) }],
    ["extensions beyond ASCII", { content: "x", extensions: { "svc-n": "事".repeat(600) } }],
    ["extensions that JSON escapes", { content: "x", extensions: { "svc-n": "\u0001".repeat(300) } }],
  ])("with long %s go in requests that a broker takes", async (_what, publication) => {
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
});
