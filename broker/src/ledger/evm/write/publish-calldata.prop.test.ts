import { topicRegistryAbi } from "@stele/contracts";
import { toHex } from "@stele/eth/node";
import * as fc from "fast-check";
import { encodeFunctionData } from "viem";
import { expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { encodePublish } from "./publish-calldata.ts";

test("publish calldata equals viem's encoding", () => {
  const batch = fc.record({
    address: fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes): Address => toHex(bytes)),
    count: fc.nat(2 ** 31 - 1),
    eventsRoot: fc.uint8Array({ minLength: 32, maxLength: 32 }),
    events: fc.uint8Array({ maxLength: 200 }),
  });
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 6 }), (batches) => {
      const args = batches.map(({ address, count, eventsRoot, events }) => ({
        topic: address,
        count,
        eventsRoot: toHex(eventsRoot),
        events: toHex(events),
      }));
      const expected = encodeFunctionData({ abi: topicRegistryAbi, functionName: "publish", args: [args] });
      expect(toHex(encodePublish(batches))).toBe(expected);
    }),
  );
});
