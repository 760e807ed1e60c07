import { type Address, concatHex, getAddress } from "viem";
import type { RegistryFixture } from "./registry-fixture.ts";

/** Deploys a foreign proxy of the topics' implementation: the registry does not know it. */
export async function deployForeignProxy(
  fixture: RegistryFixture,
): Promise<{ proxy: Address; implementation: Address }> {
  const topic = await fixture.openTopic("template");
  const code = await fixture.client.getCode({ address: topic });
  if (code === undefined) throw new Error("the topic has no code");
  const proxy = await fixture.deployCode(concatHex(["0x3d602d80600a3d3981f3", code]));
  return { proxy, implementation: getAddress(`0x${code.slice(22, 62)}`) };
}
