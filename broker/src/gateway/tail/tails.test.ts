import { expect, test } from "vitest";
import { endOfBlock } from "../../domain/position.ts";
import type { Broker } from "../../engine/broker.ts";
import { UnreadBytes } from "../shared/connection/memory.ts";
import { serve } from "../testing/serve.ts";

const count = 20;

/** Begins tails that get no events. */
const tail: Broker["tail"] = async (_, { onConnected }) => {
  const start = { id: "@2", position: endOfBlock(2), isRolledBack: false };
  const origins = { find: () => undefined, load: () => Promise.reject(new Error("unused")) };
  onConnected({ wake: () => {}, isStuck: false }, start, origins);
  return { end: async () => {} };
};

/** Takes a millisecond of this turn. */
function takeTime(): void {
  const until = performance.now() + 1;
  while (performance.now() < until);
}

const metrics = { tailEnded: () => {}, watchTails: () => {} };
const options = { tailsMax: count, cloudEventType: "test", unread: new UnreadBytes(), metrics, random: () => 0.5 };

test("a HEAD request checks its topics in slices", async () => {
  let [inTurn, most] = [0, 0];
  const authorize: Broker["authorize"] = () => {
    takeTime();
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    most = Math.max(most, (inTurn += 1));
  };
  await using server = await serve({ tail, authorize }, { tail: options });
  const topics = Array.from({ length: count }, (_, index) => `topic=${index}`);
  expect((await fetch(`${server.url}/tail?${topics.join("&")}`, { method: "HEAD" })).status).toBe(200);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(count);
});

test("a server that stops ends its tails in slices", async () => {
  let turn = 0;
  const endedIn: number[] = [];
  const tailEnded = (): void => {
    takeTime();
    endedIn.push(turn);
  };
  await using server = await serve({ tail }, { tail: { ...options, metrics: { ...metrics, tailEnded } } });
  const open = Array.from({ length: count }, () => fetch(`${server.url}/tail?topic=a`));
  const answers = await Promise.all(open);
  const nextTurn = (): void => {
    turn += 1;
    if (endedIn.length < count) setImmediate(nextTurn);
  };
  nextTurn();
  const texts = answers.map((answer) => answer.text());
  await server.close();
  for (const text of await Promise.all(texts)) expect(text).toContain('{"reason":"stopping"}');
  expect(new Set(endedIn).size).toBeGreaterThan(1);
});
