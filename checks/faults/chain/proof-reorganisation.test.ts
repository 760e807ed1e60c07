import { parseProof, verifyProof } from "@stele/wire";
import { expect, it } from "vitest";
import { type Anvil, devKey, startAnvil } from "../../harness/anvil.ts";
import { startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { groupsEnv } from "../../harness/group.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";

interface Block {
  readonly hash: string;
  readonly transactions: readonly { from: string; to: string; input: string; gas: string; gasPrice: string }[];
}

async function blockOf(anvil: Anvil, number: number): Promise<Block> {
  return (await anvil.request("eth_getBlockByNumber", [`0x${number.toString(16)}`, true])) as Block; // Its transactions are whole.
}

/** Replaces the newest block by another one with the same transaction, and adds an empty block. */
async function replaceNewest(anvil: Anvil, { transactions }: Block): Promise<void> {
  const again = transactions.map(({ from, to, input, gas, gasPrice }) => [{ from, to, data: input, gas, gasPrice }, 0]);
  await anvil.request("anvil_reorg", [1, again]);
  await anvil.request("anvil_mine", ["0x1"]);
}

async function stateOf(client: Client): Promise<string> {
  return (await client.http.send({ method: "GET", path: "/health/ready" })).text;
}

it("the broker proves an event again after a reorganisation moved it into another block of the same number", async () => {
  await using anvil = await startAnvil();
  using folder = createTempFolder();
  const group = { id: "1", endpoints: [anvil.url], privateKey: devKey(0), finality: "latest" };
  await using broker = await startBroker({ dataDir: folder.path, env: groupsEnv([group]) });
  await using client = new Client(broker.url);
  await until("the broker is ready", () => client.isReady());
  await client.open("r/a");
  const { eventId } = await client.publish("r/a", "one");
  const number = Number(eventId.split("-")[2]);
  const prove = async (): Promise<string> =>
    (await client.http.send({ method: "GET", path: `/rest/proof?eventId=${eventId}` })).text;
  const before = await blockOf(anvil, number);
  expect(await prove()).toMatch(/^{"version":1/);
  await replaceNewest(anvil, before);
  const { hash } = await blockOf(anvil, number);
  expect(hash).not.toBe(before.hash);
  await until("the broker has read the other block", async () => (await stateOf(client)).includes("in the last hour"));
  await until("the event is back", async () => (await client.getEvent(eventId).catch(() => undefined)) !== undefined);
  const text = await prove();
  const parsed = parseProof(text);
  if (parsed.status === "malformed") throw new Error(text);
  expect(verifyProof(parsed.proof, hash)).toMatchObject({ status: "verified", event: { eventId } });
});
