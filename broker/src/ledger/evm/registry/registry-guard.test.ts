import { topicRegistryAbi } from "@stele/contracts";
import { encodeFunctionResult } from "viem/utils";
import { expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { RegistryGuard } from "./registry-guard.ts";

const address: Address = `0x${"ab".repeat(20)}`;

test("ends an outage that a call reports at any moment of a check, if the registry is there", async () => {
  const noTopics = encodeFunctionResult({ abi: topicRegistryAbi, functionName: "topics", result: [] });
  for (let ticks = 0; ticks < 40; ticks += 1) {
    const clock = new VirtualClock();
    const rpc = new Rpc({ request: async ({ method }) => (method === "eth_getCode" ? "0x6000" : noTopics) });
    const guard = new RegistryGuard({ rpc, address, signer: address, clock, logger: silentLogger });
    guard.check();
    for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
    guard.onMissing();
    await clock.advance(10_000);
    expect(guard.outage).toBeUndefined();
    await guard.stop();
  }
});
