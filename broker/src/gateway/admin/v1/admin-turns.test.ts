import { adminPath } from "@stele/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import type { Broker } from "../../../engine/broker.ts";
import type { Operator } from "../../../engine/operate/operator.ts";
import { TestEngine } from "../../../engine/testing/test-engine.ts";
import { withCalls } from "../../../lib/with-calls.ts";
import { proofsRunningMax, receiverOrdersRunningMax, searchesRunningMax } from "../../limits.ts";
import { serve } from "../../testing/serve.ts";

const jsonHeaders = { "content-type": "application/json" };

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
});
afterEach(() => engine.stop());

/** Counts running calls, and holds them until the gate opens. */
class Gate {
  readonly #opened = createDeferred<void>();
  #running = 0;
  /** The most that ran at once. */
  peak = 0;

  async pass(): Promise<void> {
    this.#running += 1;
    this.peak = Math.max(this.peak, this.#running);
    await this.#opened.promise;
    await new Promise(setImmediate);
    this.#running -= 1;
  }

  async untilFull(count: number): Promise<void> {
    while (this.#running < count) await new Promise(setImmediate);
  }

  open(): void {
    this.#opened.resolve();
  }
}

it("counts proofs against the same limit as the other interfaces", async () => {
  const { broker, running } = engine;
  await broker.open({ topic: "a", groupId: undefined });
  const eventId = await engine.publish("a", "1");
  const gate = new Gate();
  const pass =
    <Proof>(getProof: (...call: Parameters<Broker["getProof"]>) => Promise<Proof>): typeof getProof =>
    async (...call) => {
      await gate.pass();
      return getProof(...call);
    };
  const getProof = pass((...call) => running.calls.getProof(...call));
  const operator = withCalls(running.operator, { getProof: pass((...call) => running.operator.getProof(...call)) });
  await using server = await serve({ getProof }, { operator });
  const paths = [`${adminPath}/events/${eventId}?proof=true`, `/rest/proof?eventId=${eventId}`];
  const asked = Array.from({ length: 4 * proofsRunningMax }, () => paths.map((path) => fetch(`${server.url}${path}`)));
  await gate.untilFull(proofsRunningMax);
  expect((await fetch(`${server.url}/rest/exist?topic=a`)).status).toBe(200);
  gate.open();
  const chainInMemory = 200206;
  for (const answer of await Promise.all(asked.flat()))
    expect(await answer.json()).toMatchObject({ code: chainInMemory });
  expect(gate.peak).toBe(proofsRunningMax);
});

it("limits searches and orders together, and answers cheap calls meanwhile", async () => {
  const gate = new Gate();
  const held: Operator = engine.running.operator;
  const operator = withCalls(held, {
    searchSessions: async (...call) => {
      await gate.pass();
      return held.searchSessions(...call);
    },
    orderSubscriptions: async (...call) => {
      await gate.pass();
      return held.orderSubscriptions(...call);
    },
  });
  await using server = await serve({}, { operator });
  const base = `${server.url}${adminPath}`;
  const asked = Array.from({ length: searchesRunningMax }, () => [
    fetch(`${base}/sessions`),
    fetch(`${base}/subscriptions/pause?all=true`, { method: "POST" }),
  ]);
  await gate.untilFull(searchesRunningMax);
  for (const path of ["figures", "nodes", "groups", "openapi.json"]) {
    expect((await fetch(`${base}/${path}`)).status, path).toBe(200);
  }
  gate.open();
  for (const answer of await Promise.all(asked.flat())) expect(await answer.json()).toEqual({ items: [] });
  expect(gate.peak).toBe(searchesRunningMax);
});

it.each([
  { order: "test", body: "{}" },
  { order: "redeliver", body: '{"all":true}' },
])("limits $order orders by themselves, and counts their dry runs as searches", async ({ order, body }) => {
  const gate = new Gate();
  const held: Operator = engine.running.operator;
  const operator = withCalls(held, {
    orderSubscriptions: async (caller, search, call) => {
      if (!call.isDryRun) await gate.pass();
      return held.orderSubscriptions(caller, search, call);
    },
  });
  await using server = await serve({}, { operator });
  const post = (query: string) =>
    fetch(`${server.url}${adminPath}/subscriptions/${order}?${query}`, { method: "POST", headers: jsonHeaders, body });
  const asked = Promise.all(Array.from({ length: 2 * receiverOrdersRunningMax }, () => post("all=true")));
  await gate.untilFull(receiverOrdersRunningMax);
  expect((await post("all=true&dryRun=true")).status).toBe(200);
  expect((await fetch(`${server.url}${adminPath}/subscriptions`)).status).toBe(200);
  gate.open();
  for (const answer of await asked) expect(await answer.json()).toEqual({ items: [] });
  expect(gate.peak).toBe(receiverOrdersRunningMax);
});

it("counts changes to a new url, even dry runs, as orders that call receivers, and other changes as searches", async () => {
  const gate = new Gate();
  const held: Operator = engine.running.operator;
  const operator = withCalls(held, {
    orderSubscriptions: async (caller, search, call) => {
      if (call.order.kind === "change" && call.order.change.url !== undefined) await gate.pass();
      return held.orderSubscriptions(caller, search, call);
    },
  });
  await using server = await serve({}, { operator });
  const post = (query: string, body: string) =>
    fetch(`${server.url}${adminPath}/subscriptions/change?${query}`, { method: "POST", headers: jsonHeaders, body });
  const url = '{"url":"http://receiver/"}';
  const asked = Promise.all(
    Array.from({ length: receiverOrdersRunningMax }, () => [
      post("all=true", url),
      post("all=true&dryRun=true", url),
    ]).flat(),
  );
  await gate.untilFull(receiverOrdersRunningMax);
  expect((await post("all=true", '{"topic":"a"}')).status).toBe(200);
  expect((await fetch(`${server.url}${adminPath}/subscriptions`)).status).toBe(200);
  gate.open();
  for (const answer of await asked) expect(await answer.json()).toEqual({ items: [] });
  expect(gate.peak).toBe(receiverOrdersRunningMax);
});
