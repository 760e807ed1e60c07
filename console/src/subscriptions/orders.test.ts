import { Stele, SteleError } from "@stele/client";
import { expect, test } from "vitest";
import { describeFailure, describeOrder, describeOutcome, giveOrder, ordersFor } from "./orders.ts";

test("describes the effect of each order, with the number of events", () => {
  expect(describeOrder("pause", 1)).toMatch(/^1 event waits, and will be held/);
  expect(describeOrder("resume", 1200)).toMatch(/^1,200 events wait, and will be delivered in order/);
  expect(describeOrder("retry", 0)).toMatch(/^0 events wait\. The next attempt/);
  expect(describeOrder("skip", 2)).toMatch(/^2 events will never be delivered/);
  expect(describeOrder("replay", 1)).toMatch(/^1 event will be delivered again/);
});

test("describes what an order did, with the refusals and the events that it moved", () => {
  const done = { subscriptions: 1, events: 1200, refusals: [], doubts: [] };
  expect(describeOutcome("skip", done)).toBe("Skip: done for 1 subscription. 1,200 events skipped.");
  expect(describeOutcome("replay", done)).toBe("Replay: done for 1 subscription. 1,200 events to deliver again.");
  const refused = { subscriptions: 2, events: 0, refusals: ["it is locked", "it is paused"], doubts: [] };
  expect(describeOutcome("pause", refused)).toBe(
    "Pause: done for 2 subscriptions. Refused for some: it is locked. Refused for some: it is paused.",
  );
});

test.each([
  [
    "skip",
    undefined,
    false,
    "no answer. The order may have taken effect: look at the subscription before you give it again.",
  ],
  [
    "skip",
    "OFFSET_LAST",
    false,
    "no answer. The order may have taken effect: look at the subscription before you give it again.",
  ],
  ["skip", 7, false, "no answer. The order may have taken effect."],
  ["replay", 7, false, "no answer. The order may have taken effect."],
  ["pause", undefined, false, "no answer. The order may have taken effect."],
  ["skip", undefined, true, "no answer."],
] as const)(
  "after a failed %s to the place %j, the text says whether the order may have taken effect (wasRefused: %j)",
  (...[name, place, wasRefused, says]) => {
    const error = new SteleError("no answer", { retry: false, wasRefused });
    expect(describeFailure({ name, place }, error)).toBe(says);
  },
);

test("the outcome says that an order may have taken effect for some subscriptions, unless the order is a dry run", async () => {
  const error = { code: 200207, detail: "the broker's database cannot be reached" };
  const items = [
    { id: "a", events: 1 },
    { id: "b", events: 0, error },
  ];
  const stele = new Stele({ url: "http://broker", fetch: async () => Response.json({ items }) });
  const order = { name: "skip", target: { prefix: "a" } } as const;
  const outcome = await giveOrder(stele, { ...order, dryRun: false });
  expect(outcome).toEqual({ subscriptions: 1, events: 1, refusals: [], doubts: [error.detail] });
  expect(describeOutcome("skip", outcome)).toBe(
    "Skip: done for 1 subscription. 1 event skipped. May have taken effect for some: the broker's database cannot be reached.",
  );
  expect(await giveOrder(stele, { ...order, dryRun: true })).toMatchObject({ refusals: [error.detail], doubts: [] });
});

test("ordersFor offers resume, skip and replay for a paused subscription, and nothing for an unknown state", () => {
  expect(ordersFor("paused")).toEqual(["resume", "skip", "replay"]);
  expect(ordersFor("of a newer version")).toEqual([]);
});

test("adds up the results of every page, and lists each refusal once", async () => {
  const refused = { code: 100507, detail: "it is locked" };
  const pages = [
    {
      items: [
        { id: "a", events: 2 },
        { id: "b", events: 0, error: refused },
      ],
      next: "b",
    },
    {
      items: [
        { id: "c", events: 3 },
        { id: "d", events: 0, error: refused },
      ],
    },
  ];
  const asked: string[] = [];
  const stele = new Stele({
    url: "http://broker",
    fetch: (input) => {
      asked.push(new Request(input).url);
      return Promise.resolve(new Response(JSON.stringify(pages[asked.length - 1])));
    },
  });
  const outcome = await giveOrder(stele, { name: "pause", target: { prefix: "a" }, dryRun: true });
  expect(outcome).toEqual({ subscriptions: 2, events: 5, refusals: ["it is locked"], doubts: [] });
  expect(asked.every((url) => url.includes("/admin/v1/subscriptions/pause?prefix=a&dryRun=true"))).toBe(true);
});

test.each([
  ["skip", "OFFSET_LAST", { to: "OFFSET_LAST" }],
  ["replay", 7, { from: 7 }],
  ["pause", "OFFSET_LAST", {}],
] as const)("the order %s with the event position %j sends the body %j", async (name, place, body) => {
  const bodies: unknown[] = [];
  const stele = new Stele({
    url: "http://broker",
    fetch: async (input, init) => {
      bodies.push(await new Request(input, init).json());
      return new Response(JSON.stringify({ id: "a", events: 1 }));
    },
  });
  await giveOrder(stele, { name, target: "a", place, dryRun: true });
  expect(bodies).toEqual([body]);
});
