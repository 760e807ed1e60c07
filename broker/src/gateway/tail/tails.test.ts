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

test("a server that stops ends its tails in slices", async () => {
  let turn = 0;
  const endedIn: number[] = [];
  const tailEnded = (): void => {
    const until = performance.now() + 1;
    while (performance.now() < until); // Takes a millisecond of this turn.
    endedIn.push(turn);
  };
  const metrics = { tailEnded, watchTails: () => {} };
  const options = { tailsMax: count, cloudEventType: "test", unread: new UnreadBytes(), metrics, random: () => 0.5 };
  await using server = await serve({ tail }, { tail: options });
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
