import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { examineAddress } from "./examine-address.ts";

it("reports a broker that accepts the connection, but does not answer within 10 s", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => {
    vi.useRealTimers();
    server.close();
  });
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const findings = examineAddress(url, new AbortController().signal);
  const [socket] = await once(server, "connection");
  vi.advanceTimersByTime(10_000);
  expect(await findings).toEqual([
    {
      check: "address",
      status: "failed",
      detail: `${url} does not answer within 10 s`,
      advice: expect.stringContaining("restart"),
    },
  ]);
  socket.destroy();
});

it("reports a port that the Fetch standard blocks", async () => {
  const findings = await examineAddress("http://127.0.0.1:6000", new AbortController().signal);
  expect(findings).toMatchObject([
    {
      status: "failed",
      detail: "http://127.0.0.1:6000 does not answer (bad port)",
      advice: expect.stringMatching(/start the broker with another --port$/),
    },
  ]);
});

it.each([
  ["http", "write https if the broker speaks TLS"],
  ["https", "stele shows no client certificate"],
])("reports what may be wrong at an %s address that ends the connection", async (scheme, advice) => {
  const server = createServer((socket) => socket.once("data", () => socket.destroy())).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const findings = await examineAddress(url, new AbortController().signal);
  expect(findings).toMatchObject([{ status: "failed", advice: expect.stringContaining(advice) }]);
});
