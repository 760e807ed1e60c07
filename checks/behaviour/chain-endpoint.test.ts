import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { topicAbi, topicRegistryAbi } from "@stele/contracts";
import { createPublicClient, http, MethodNotFoundRpcError, getAddress, parseEventLogs } from "viem";
import { describe, expect, it } from "vitest";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const eventsPublished = { abi: topicRegistryAbi, eventName: "EventsPublished" } as const;
const page = readFileSync(new URL("../../docs/chain.md", import.meta.url), "utf8");

function connect(url: string) {
  return createPublicClient({ transport: http(`${url}/chain`, { retryCount: 0 }), cacheTime: 0 });
}

describe("the embedded chain over HTTP, read with viem", () => {
  const running = useWorld(embeddedWorld);

  /** Opens a topic and publishes one event. Returns a viem client, the topic's state, and its contract, registry and logs on the chain. */
  async function publishOne(topic: string) {
    const { client, broker } = running();
    await client.open(topic);
    await client.publish(topic, "in stone");
    const state = await client.state(topic);
    const chain = connect(broker.url);
    const address = state.topicAddress as `0x${string}`; // INTERFACE.md, TopicInfo: a hex string with the prefix 0x.
    const registry = await chain.readContract({ address, abi: topicAbi, functionName: "registry" });
    const published = { address: registry, args: { topic: address }, ...eventsPublished } as const;
    const logs = await chain.getContractEvents({ ...published, fromBlock: 0n });
    return { chain, state, address, registry, published, logs };
  }

  it("the block number, block, log and receipt of a published event agree with the topic's state", async () => {
    const { chain, state, address, registry, logs } = await publishOne("chain/1");
    expect(logs).toHaveLength(1);
    const [log] = logs;
    expect(log).toMatchObject({ blockNumber: BigInt(state.blockNumber), args: { firstSequence: 1n, count: 1 } });
    expect(await chain.getBlockNumber()).toBe(BigInt(state.blockNumber));
    const block = await chain.getBlock({ blockNumber: BigInt(state.blockNumber) });
    expect(block.hash).toBe(log?.blockHash);
    const receipt = await chain.getTransactionReceipt({ hash: block.transactions[0] ?? "0x" });
    expect(receipt).toMatchObject({ status: "success", transactionHash: log?.transactionHash });
    const [inReceipt] = parseEventLogs({ ...eventsPublished, logs: receipt.logs });
    expect(inReceipt?.address).toBe(registry.toLowerCase());
    expect(inReceipt?.args).toMatchObject({ ...log?.args, topic: getAddress(address) });
  });

  it("eth_call to a topic's contract returns the topic's name and sequence", async () => {
    const { chain, state, address } = await publishOne("chain/2");
    const contract = { address, abi: topicAbi } as const;
    expect(await chain.readContract({ ...contract, functionName: "name" })).toBe("chain/2");
    expect(await chain.readContract({ ...contract, functionName: "sequence" })).toBe(BigInt(state.sequenceNumber));
  });

  it("eth_call of a function that reverts returns error code 3, as geth does", async () => {
    const { chain, address } = await publishOne("chain/3");
    // 0x43d726d6 is close(), which a topic's contract does not have.
    const call = chain.request({ method: "eth_call", params: [{ to: address, data: "0x43d726d6" }, "latest"] });
    await expect(call).rejects.toMatchObject({ cause: { code: 3, data: expect.stringMatching(/^0x/) } });
  });

  it('eth_sendRawTransaction returns the error "method not found" and makes no block', async () => {
    const { chain } = await publishOne("chain/4");
    const before = await chain.getBlockNumber();
    const sending = chain.sendRawTransaction({ serializedTransaction: "0x02f86c01" });
    await expect(sending).rejects.toThrow(MethodNotFoundRpcError);
    await expect(sending).rejects.toThrow(/this endpoint is read-only/);
    expect(await chain.getBlockNumber()).toBe(before);
  });

  it("viem receives a topic's new events in order by polling, without server-side filters", async () => {
    const { chain, published } = await publishOne("chain/5");
    const seen: (bigint | undefined)[] = [];
    const unwatch = chain.watchContractEvent({
      ...published,
      pollingInterval: 20,
      onLogs: (logs) => seen.push(...logs.map(({ args }) => args.firstSequence)),
    });
    // viem starts at the block of its first poll, so publish until it sees an event.
    await until("viem has seen an event", async () => {
      await running().client.publish("chain/5", "again");
      return seen.length > 0;
    });
    unwatch();
    const [first = 0n] = seen;
    expect(first).toBeGreaterThan(1n);
    expect(seen).toEqual(seen.map((_, index) => first + BigInt(index)));
  });

  it("the program in docs/chain.md prints a topic's events in order", async () => {
    const { client, broker } = running();
    await client.open("orders/new");
    for (const content of ["first", "second", "third"]) await client.publish("orders/new", content);
    const [, program = ""] = /```js\n(.*?)```/s.exec(page) ?? [];
    const args = ["--input-type=module", "-e", program.replace("http://127.0.0.1:8080", broker.url)];
    // From this folder, the program can import the workspaces.
    const cwd = fileURLToPath(new URL("..", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => line.replace(/^block \d+, /, ""))).toEqual([
      "event 1: first",
      "event 2: second",
      "event 3: third",
    ]);
  });
});

describe("the setting chainEndpoint", () => {
  const running = useWorld(embeddedWorld, { env: { STELE_CHAIN_ENDPOINT: "off" } });

  it("chainEndpoint=off: /chain returns 404, and neither the banner nor GET / mentions /chain", async () => {
    const { client, broker } = running();
    await expect(connect(broker.url).getBlockNumber()).rejects.toMatchObject({ status: 404 });
    expect(broker.stderr()).not.toMatch(/^ {2}Chain /m);
    expect((await client.http.send({ method: "GET", path: "/" })).json()).not.toHaveProperty("chain");
  });
});

describe("the setting basePath", () => {
  const running = useWorld(embeddedWorld, { env: { STELE_BASE_PATH: "/events" } });

  it("a base path precedes /chain in the URL, in the banner and in the answer to GET /", async () => {
    const { client, broker } = running();
    expect(await connect(broker.url).getChainId()).toBe(5_461_068);
    expect(broker.stderr()).toContain(`  Chain     ${broker.url}/chain\n`);
    expect((await client.http.send({ method: "GET", path: "/" })).json()).toMatchObject({ chain: "/events/chain" });
  });
});
