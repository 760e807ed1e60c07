import { errorCatalogue } from "@stele/wire";
import { afterAll, beforeAll, expect, it } from "vitest";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";

const urls = [
  "http://down.example/",
  "http://down.example:8080/a",
  "https://down.example:8443/b",
  "https://down.example/c",
  "http://down.example.org/",
  "http://127.0.0.1:39901/",
  "http://[::1]:39901/",
];
const page = { after: undefined, limit: 50 };

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.start();
  await engine.broker.open({ topic: "a", groupId: undefined });
  for (const url of urls) await engine.subscribe("a", { url });
});
afterAll(() => engine.stop());

async function search(host: string): Promise<readonly (string | undefined)[]> {
  const { items } = await engine.broker.operator.searchSubscriptions(testCaller, { host }, page);
  return items.map(({ subscription: { delivery } }) => (delivery.kind === "webhook" ? delivery.url : undefined));
}

it.each<[string, readonly number[]]>([
  ["down.example", [0, 1, 2, 3]],
  ["DOWN.example.", [0, 1, 2, 3]],
  ["down.example:8080", [1]],
  ["down.example:80", [0]],
  ["down.example:443", [3]],
  ["127.0.0.1", [5]],
  ["127.0.0.1:39901", [5]],
  ["127.0.0.1:1", []],
  ["[::1]", [6]],
  ["down", []],
])("a search for host %s finds receivers at all its ports, or at the one that it names", async (host, places) => {
  expect(await search(host)).toEqual(places.map((place) => urls[place]));
});

it("refuses an invalid host", async () => {
  await expect(search("a b")).rejects.toMatchObject({ code: errorCatalogue.parameterInvalid.code });
});
