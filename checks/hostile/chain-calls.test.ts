import { describe, expect, it } from "vitest";
import { PublishLoad } from "../faults/support/publish-load.ts";
import { HttpClient } from "../harness/http-client.ts";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { peakMebibytes } from "./support/process-memory.ts";

/** If calls ran in the thread that makes blocks, a publish during the `recursion` call would time out after 30 s. */
const publishMsMax = 10_000;
/** A call may run for 1 s; the rest is for restarting the thread after the previous call. */
const callMsMax = 15_000;
const memoryMebibytesMax = 512;
const shutdownDeadlineMs = 10_000;
/** A look-up that takes longer than this has waited behind other calls: alone it takes a few milliseconds. */
const behindMs = 200;

interface Answer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

const target = `0x${"aa".repeat(20)}`;
/** Code that calls itself twice with all its gas: 2^1024 calls without a loop, and so without a JUMPDEST. */
const recursion = "0x5f5f5f5f5f305af1505f5f5f5f5f305af150";
/** Code that jumps once and calls itself. In each of 1,024 calls, the EVM searches the 260 KB of code for jump targets again. */
const hugeCode = `0x6003565b5f5f5f5f5f305af100${"60ff".repeat(130_000)}`;
const timeout = { code: -32_000, message: "execution aborted (timeout = 1000ms)" };

function callOf(code: string) {
  return { method: "eth_call", params: [{ to: target }, "latest", { [target]: { code } }] };
}

function blake2(rounds: number) {
  const data = `0x${rounds.toString(16).padStart(8, "0")}${"00".repeat(64 + 128 + 16)}01`;
  return { method: "eth_call", params: [{ to: `0x${"00".repeat(19)}09`, data }, "latest"] };
}

async function ask(http: HttpClient, body: unknown): Promise<Answer | readonly Answer[]> {
  const headers = { "content-type": "application/json" };
  const answer = await http.send({ method: "POST", path: "/chain", headers, body: JSON.stringify(body) });
  return answer.json() as Answer | readonly Answer[]; // JSON-RPC 2.0; the assertions check the relevant part.
}

const toBody = (call: object, id = 1) => ({ jsonrpc: "2.0", id, ...call });

function longestWaitMs({ acknowledged }: PublishLoad): number {
  return Math.max(...[...acknowledged.values()].map(({ sentAt, acknowledgedAt }) => acknowledgedAt - sentAt));
}

describe("an attacker's call to /chain", () => {
  const running = useWorld(embeddedWorld);

  /** Publishes while `work` runs; returns its result, and the load with its acknowledged publishes. */
  async function whilePublishing<Result>(work: () => Promise<Result>) {
    const { client, broker } = running();
    await client.open("hostile/chain");
    const load = new PublishLoad(["hostile/chain"], { publishersPerTopic: 4 });
    load.start(broker.url);
    try {
      await until("a publish is acknowledged", () => load.acknowledged.size > 0);
      return { result: await work(), load };
    } finally {
      await load.stop();
    }
  }

  it.each([
    ["BLAKE2F with 200,000,000 rounds", blake2(200_000_000), { code: -32_000, message: "out of gas" }],
    ["BLAKE2F with all the gas that a call has", blake2(49_000_000), timeout],
    ["recursion without a JUMPDEST", callOf(recursion), timeout],
    ["an estimate of the recursion", { ...callOf(recursion), method: "eth_estimateGas" }, timeout],
    ["jump analysis of 260 KB in each of 1,024 calls", callOf(hugeCode), { code: -32_000 }],
  ])(
    "%s: publishing continues, and the call ends with an error",
    async (_name, call, error) => {
      const startedAt = performance.now();
      const http = new HttpClient(running().broker.url, { timeoutMs: 600_000 });
      const { result, load } = await whilePublishing(() => ask(http, toBody(call)));
      await http[Symbol.asyncDispose]();
      expect(result).toMatchObject({ error });
      expect(performance.now() - startedAt).toBeLessThan(callMsMax);
      expect(load.refusals).toEqual([]);
      expect(longestWaitMs(load)).toBeLessThan(publishMsMax);
      expect(peakMebibytes(running().broker.pid)).toBeLessThan(memoryMebibytesMax);
    },
    600_000,
  );

  it("an attacker's call fails alone: the broker answers other calls in the queue", async () => {
    await using http = new HttpClient(running().broker.url);
    const attack = ask(http, toBody(callOf(recursion)));
    const honest = Array.from({ length: 8 }, (_, id) => ask(http, toBody({ method: "eth_chainId", params: [] }, id)));
    expect(await Promise.all(honest)).toEqual(
      honest.map((_, id) => ({ jsonrpc: "2.0", id, result: `0x${(5_461_068).toString(16)}` })),
    );
    expect(await attack).toMatchObject({ error: timeout });
  }, 60_000);

  it("an attacker's calls do not keep the broker from stopping, even if four connections send batches of 100", async () => {
    const { broker } = running();
    await using http = new HttpClient(broker.url, { timeoutMs: 600_000 });
    const batch = Array.from({ length: 100 }, (_, id) => toBody(callOf(recursion), id));
    const attacks = Array.from({ length: 4 }, () => ask(http, batch).catch(() => undefined));
    await until("a look-up waits behind the calls", async () => {
      const askedAt = performance.now();
      await ask(http, toBody({ method: "eth_chainId", params: [] }));
      return performance.now() - askedAt > behindMs;
    });
    const startedAt = performance.now();
    expect(await broker.stop()).toMatchObject({ code: 0 });
    expect(performance.now() - startedAt).toBeLessThan(shutdownDeadlineMs);
    await Promise.all(attacks);
  }, 600_000);
});
