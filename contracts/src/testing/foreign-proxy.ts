import { type Address, concatHex, getAddress } from "viem";
import type { RegistryFixture } from "./registry-fixture.ts";

/** Deploys a proxy of the registry's topic implementation without the registry, and returns the addresses of both. */
export async function deployForeignProxy(
  fixture: RegistryFixture,
): Promise<{ proxy: Address; implementation: Address }> {
  const topic = await fixture.openTopic("template");
  const code = await fixture.client.getCode({ address: topic });
  if (code === undefined) throw new Error("the topic has no code");
  const proxy = await fixture.deployCode(concatHex(["0x3d602d80600a3d3981f3", code]));
  return { proxy, implementation: getAddress(`0x${code.slice(22, 62)}`) };
}
