import { expect, it } from "vitest";
import { Stele } from "./index.ts";

interface ListRequest {
  readonly id: string;
  readonly params: { readonly pageIndex: number; readonly pageSize: number };
}

/** A client of a broker with 250 topics. The caller may not read the first 200, so the pages omit them. `total` is the number that the broker reports. */
function createClient(total: number | undefined): Stele {
  return new Stele({
    url: "http://broker.example",
    fetch: async (input, init) => {
      const { id, params } = (await new Request(input, init).json()) as ListRequest; // The client makes no other call.
      const { pageIndex, pageSize } = params;
      const places = Array.from({ length: pageSize }, (_, index) => pageIndex * pageSize + index);
      const topicInfoList = places
        .filter((place) => place >= 200 && place < 250)
        .map((place) => ({ topicName: `t${place}`, topicAddress: "0x", senderAddress: "0x", createdTimestamp: 0 }));
      return Response.json({ jsonrpc: "2.0", id, result: { total, pageIndex, pageSize, topicInfoList } });
    },
  });
}

it("topics() lists the topics after pages that are empty because the caller may not read their topics", async () => {
  const names: string[] = [];
  for await (const { topicName } of createClient(250).topics()) names.push(topicName);
  expect(names).toHaveLength(50);
  expect(names[0]).toBe("t200");
});

it("topics() ends after the first page if the answer has no total", async () => {
  for await (const { topicName } of createClient(undefined).topics()) expect.unreachable(topicName);
});
