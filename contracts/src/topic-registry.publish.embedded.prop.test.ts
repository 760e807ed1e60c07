import { startEmbeddedChain } from "@stele/chain";
import fc from "fast-check";
import { type Address, custom, encodeFunctionData, type Hex, zeroAddress } from "viem";
import { expect, test } from "vitest";
import { everyone } from "./constants.ts";
import { batchOf } from "./testing/batches.ts";
import { registryCode } from "./testing/registry-code.ts";
import { alice, legacy, RegistryFixture } from "./testing/registry-fixture.ts";

const names = ["a", "b", "c"];
const selectorBytes = 4;
const word = 32;

const batch = fc.record({
  topic: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, fc.constant("unknown")),
  count: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 5 }) }, fc.constant(0)),
  bytes: fc.oneof(fc.integer({ min: 3, max: 100 }), fc.integer({ min: 15, max: 9_000 })),
});
/** Words for the calldata: wrong offsets and lengths, and values too large for their field. */
const value = fc.constantFrom(0n, 1n, 3n, 31n, 32n, 96n, 128n, 160n, 2n ** 32n, 2n ** 64n, 2n ** 160n, 2n ** 256n - 1n);
const call = fc.record({
  batches: fc.array(batch, { minLength: 1, maxLength: 6 }),
  changes: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 2, arbitrary: fc.array(fc.record({ place: fc.nat(40), value }), { maxLength: 2 }) },
  ),
  /** Bytes to append to the calldata; if negative, bytes to cut off its end. */
  extra: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -40, max: 40 })),
  gas: fc.oneof({ weight: 4, arbitrary: fc.constant(2_000_000) }, fc.integer({ min: 30_000, max: 200_000 })),
});
type Call = typeof call extends fc.Arbitrary<infer One> ? One : never;

test("the chain's own publish matches the EVM for any calldata and gas", async () => {
  await using world = await startWorld(registryCode);
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 5 }), async (calls) => {
      const fixture = await RegistryFixture.deploy(world.transport);
      await fixture.open(names, alice, everyone);
      for (const each of calls) await send(fixture, each);
      expect(world.mismatches).toEqual([]);
    }),
    { numRuns: 100 },
  );
}, 120_000);

test.each([
  ["base", { ...registryCode.publishGas, base: registryCode.publishGas.base + 1 }],
  ["perBatch", { ...registryCode.publishGas, perBatch: registryCode.publishGas.perBatch + 1 }],
])("the embedded chain reports a mismatch with the EVM if publishGas.%s is wrong", async (_name, publishGas) => {
  await using world = await startWorld({ ...registryCode, publishGas });
  const fixture = await RegistryFixture.deploy(world.transport);
  const topic = await fixture.openTopic("a");
  expect(world.mismatches).toEqual([]);
  await fixture.publish([batchOf(topic, 1)]);
  expect(world.mismatches).toEqual([expect.objectContaining({ message: expect.stringContaining("gas: ") })]);
});

async function startWorld(code: typeof registryCode) {
  const options = { file: ":memory:", chainId: 31_337, genesisAccounts: [alice.address], checkInterval: 1 } as const;
  const chain = await startEmbeddedChain({ ...options, registryCode: code });
  const mismatches: Error[] = [];
  chain.on("mismatch", (error) => mismatches.push(error));
  return { transport: custom(chain, { retryCount: 0 }), mismatches, [Symbol.asyncDispose]: () => chain.stop() };
}

/** Sends a `publish` with changed calldata. The call may revert, or the chain may refuse its gas limit. */
async function send(fixture: RegistryFixture, { batches, ...how }: Call): Promise<void> {
  const { client, registry, contract } = fixture;
  const toBatch = ({ topic, count, bytes }: Call["batches"][number]) => {
    const address: Address = topic === "unknown" ? zeroAddress : fixture.addressOf(topic);
    return batchOf(address, count, `0x${"5a".repeat(bytes)}`);
  };
  const data = encodeFunctionData({ abi: contract.abi, functionName: "publish", args: [batches.map(toBatch)] });
  const request = { to: registry, data: change(data, how), gas: BigInt(how.gas), ...legacy };
  const hash = await client.sendTransaction(request).catch(() => undefined);
  if (hash !== undefined) await client.waitForTransactionReceipt({ hash, checkReplacement: false });
}

function change(data: Hex, { changes, extra }: Pick<Call, "changes" | "extra">): Hex {
  const bytes = Buffer.from(data.slice(2), "hex");
  for (const { place, value } of changes) {
    const at = selectorBytes + place * word;
    if (at + word <= bytes.length) bytes.write(value.toString(16).padStart(2 * word, "0"), at, "hex");
  }
  const changed = extra < 0 ? bytes.subarray(0, extra) : Buffer.concat([bytes, Buffer.alloc(extra, 1)]);
  return `0x${changed.toString("hex")}`;
}
