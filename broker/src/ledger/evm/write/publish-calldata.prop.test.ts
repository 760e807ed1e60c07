import { topicRegistryAbi } from "@stele/contracts";
import { toHex } from "@stele/eth/node";
import * as fc from "fast-check";
import { encodeFunctionData } from "viem";
import { expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { anyCharacter } from "../../../lib/testing/any-character.ts";
import { type EncodedBatch, encodeOpenAndPublish, encodePublish } from "./publish-calldata.ts";

const batches = fc.array(
  fc.record({
    address: fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes): Address => toHex(bytes)),
    count: fc.nat(2 ** 31 - 1),
    eventsRoot: fc.uint8Array({ minLength: 32, maxLength: 32 }),
    events: fc.uint8Array({ maxLength: 200 }),
  }),
  { maxLength: 6 },
);

function toArguments({ address, count, eventsRoot, events }: EncodedBatch) {
  return { topic: address, count, eventsRoot: toHex(eventsRoot), events: toHex(events) };
}

test("calldata of publish and publishAll equals viem's encoding", () => {
  fc.assert(
    fc.property(batches, (list) => {
      const args = [list.map(toArguments)] as const;
      for (const functionName of ["publish", "publishAll"] as const) {
        const expected = encodeFunctionData({ abi: topicRegistryAbi, functionName, args });
        expect(toHex(encodePublish(list, functionName))).toBe(expected);
      }
    }),
  );
});

test("calldata of openAndPublish equals viem's encoding", () => {
  const names = fc.array(fc.string({ unit: anyCharacter, maxLength: 80 }), { maxLength: 4 });
  fc.assert(
    fc.property(batches, names, fc.nat(2 ** 32 - 1), (list, opened, writers) => {
      const args = [opened, writers, list.map(toArguments)] as const;
      const expected = encodeFunctionData({ abi: topicRegistryAbi, functionName: "openAndPublish", args });
      expect(toHex(encodeOpenAndPublish({ names: opened, writers }, list))).toBe(expected);
    }),
  );
});
