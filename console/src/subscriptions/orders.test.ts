import { Stele } from "@stele/client";
import { expect, test } from "vitest";
import { describeOrder, giveOrder, ordersFor } from "./orders.ts";

test("says what an order will do, and how many events it concerns", () => {
  expect(describeOrder("pause", 1)).toMatch(/^1 event waits, and will be held/);
  expect(describeOrder("resume", 1200)).toMatch(/^1,200 events wait, and will be delivered in order/);
  expect(describeOrder("retry", 0)).toMatch(/^0 events wait\. The next attempt/);
});

test("an unknown state takes no order", () => {
  expect(ordersFor("paused")).toEqual(["resume"]);
  expect(ordersFor("of a newer version")).toEqual([]);
});

test("sums up every page, and names each refusal once", async () => {
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
  expect(outcome).toEqual({ subscriptions: 2, events: 5, refusals: ["it is locked"] });
  expect(asked.every((url) => url.includes("/admin/v1/subscriptions/pause?prefix=a&dryRun=true"))).toBe(true);
});
