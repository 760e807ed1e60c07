import { startEmbeddedChain } from "@stele/chain";
import fc from "fast-check";
import { type Address, custom, zeroAddress } from "viem";
import { expect, test } from "vitest";
import { everyone } from "./constants.ts";
import { batchOf } from "./testing/batches.ts";
import { registryCode } from "./testing/registry-code.ts";
import { alice, bob, RegistryFixture } from "./testing/registry-fixture.ts";

const names = ["a", "b", "c", "closed", "ours"];
const newNames = ["d", "e", "a name that is longer than one storage slot of 32 bytes", "unknown"];
const topic = fc.constantFrom(...names, ...newNames);
/** Names to open: some are new, open or closed topics, and some repeat. */
const opened = fc.array(topic, { maxLength: 6 });
const batch = fc.record({
  topic,
  count: fc.integer({ min: 0, max: 5 }),
  bytes: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 600 })),
});
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      batches: fc.array(batch, { maxLength: 12 }),
      isBob: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("open" as const), names: opened, isBob: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("open and publish" as const),
      names: opened,
      batches: fc.array(batch, { maxLength: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("close" as const), name: fc.constantFrom(...names) }) },
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

test.each([
  ["the chain's own interpreter matches", undefined],
  ["the chain's own publish and interpreter match", registryCode],
])(
  "%s the EVM in gas, logs, storage and contracts for any opens, publishes and closes",
  async (_what, code) => {
    const genesisAccounts = [alice, bob].map((account) => account.address);
    await using chain = await startEmbeddedChain({
      file: ":memory:",
      chainId: 31_337,
      genesisAccounts,
      checkInterval: 1,
      ...(code === undefined ? {} : { registryCode: code }),
    });
    const mismatches: Error[] = [];
    chain.on("mismatch", (error) => mismatches.push(error));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        const fixture = await RegistryFixture.deploy(custom(chain, { retryCount: 0 }));
        await fixture.open(names.slice(0, 4), alice, everyone);
        await fixture.open(["ours"], alice, await fixture.createWriters([], alice));
        await fixture.close("closed");
        for (const each of steps) await run(fixture, each);
        expect(mismatches).toEqual([]);
      }),
      { numRuns: 25 },
    );
  },
  120_000,
);

async function run(fixture: RegistryFixture, step: Step): Promise<void> {
  if (step.kind === "close") {
    await fixture.close(step.name);
  } else if (step.kind === "open") {
    await fixture.open(step.names, step.isBob ? bob : alice);
  } else {
    const batches = step.batches.map((one) => toBatch(fixture, one));
    if (step.kind === "publish") await fixture.publish(batches, step.isBob ? bob : alice);
    else await fixture.openAndPublish(step.names, batches);
  }
}

function toBatch(fixture: RegistryFixture, { topic, count, bytes }: { topic: string; count: number; bytes: number }) {
  const address: Address = topic === "unknown" ? zeroAddress : fixture.addressOf(topic);
  return batchOf(address, count, `0x${"5a".repeat(bytes)}`);
}
