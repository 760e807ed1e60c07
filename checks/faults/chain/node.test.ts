import { getContractAddress } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { devKey, startAnvil } from "../../harness/anvil.ts";
import { startBroker } from "../../harness/broker-process.ts";
import { codeOf } from "../../harness/client.ts";
import { groupsEnv } from "../../harness/group.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { ChainScenario } from "../support/chain-scenario.ts";
import { expectGaplessSequences, replayAll } from "../support/replay.ts";

const chainUnreachable = 200_205;
const refusalsAwaited = 8;
const eventsAwaited = 40;
/** The test with five restarts takes 40 s. */
const timeoutMs = 300_000;
/** A contract that every anvil has and that is not a registry. */
const otherContract = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

describe("a chain that stops or changes", () => {
  it.concurrent(
    "a chain node restarts five times under load, each time without its pool: no event is lost or duplicated",
    async () => {
      await using scenario = await ChainScenario.start();
      for (const isAtOnce of [false, false, true, true, true]) {
        await scenario.stopChain();
        if (!isAtOnce) await scenario.untilRefused(refusalsAwaited);
        await scenario.resumeChain();
        await scenario.untilAcknowledged(eventsAwaited); // Also of transactions that the lost pool had: the broker sends them again.
      }
      await scenario.expectRecovered();
    },
    timeoutMs,
  );

  it.concurrent(
    "a chain is replaced by one with another chain id, then by one that differs only in its first block: the broker writes to neither, and resumes when the former chain is back",
    async () => {
      await using scenario = await ChainScenario.start();
      for (const args of [["--chain-id", "99"], []]) {
        await scenario.stopChain();
        await using other = await startAnvil({ blockTimeS: 0.5, args });
        scenario.proxy.retarget(other.url);
        await scenario.untilRefused(refusalsAwaited);
        await until("the broker reports that it is not ready", async () => !(await scenario.client.isReady()));
        expect(await other.request("eth_getTransactionCount", [privateKeyToAddress(devKey(0)), "pending"])).toBe("0x0");
        await scenario.resumeChain();
        await scenario.untilAcknowledged(eventsAwaited);
      }
      await scenario.expectRecovered();
    },
    timeoutMs,
  );
});

describe("a chain node that leaves out the logs of a block", () => {
  it.concurrent("if logs of a block are missing, the broker reads the block again once the next event shows the gap, and delivers its events", async () => {
    await using scenario = await ChainScenario.start();
    let block: unknown;
    let isSearched = false;
    scenario.proxy.treat(async ({ calls, response, forward }) => {
      const answer = await forward();
      const [call] = calls;
      const { blockHash } = (call?.method === "eth_getLogs" ? call.params[0] : {}) as { blockHash?: string }; // The broker sends these.
      const hasLogs = blockHash !== undefined && answer.includes("transactionHash");
      if (hasLogs) block ??= blockHash;
      const isSearch = calls.some(({ method }) => method === "eth_getLogs") && blockHash === undefined;
      if (isSearch && block !== undefined) isSearched = true; // Then the node can search the block's logs.
      const isLeftOut = hasLogs && blockHash === block && !isSearched;
      response.end(isLeftOut ? JSON.stringify({ jsonrpc: "2.0", id: call?.id, result: [] }) : answer);
    });
    await until("the node leaves out logs", () => block !== undefined);
    await scenario.untilAcknowledged(eventsAwaited);
    expect(scenario.broker.stdout()).toContain("index lacked events of a block");
    await scenario.load.stop();
    const events = await replayAll(scenario.client);
    await expectGaplessSequences(scenario.client, events);
    await until("the subscription has every event, some perhaps twice", () => {
      const arrived = new Set(scenario.receiver.attempts.map(({ event }) => event.eventId));
      return events.every(({ eventId }) => arrived.has(eventId));
    });
    expect(await scenario.client.isReady()).toBe(true);
  });
});

describe("a registry's address", () => {
  it.concurrent("other code at the registry's address: health names this address as the reason why the group is down; the broker refuses calls", async () => {
    await using scenario = await ChainScenario.prepare({ group: { registry: otherContract } });
    await scenario.startBroker();
    expect(await codeOf(scenario.client.open("x"))).toBe(chainUnreachable);
    const health = await scenario.client.http.send({ method: "GET", path: "/health/ready" });
    expect(health.status).toBe(503);
    expect(health.text.toLowerCase()).toContain(otherContract.toLowerCase());
  });

  it.concurrent("no code at the registry's address: health names this address as the reason why the group is down, until a registry is there", async () => {
    const from = privateKeyToAddress(devKey(1));
    const registry = getContractAddress({ from, nonce: 0n }).toLowerCase();
    await using scenario = await ChainScenario.prepare({ group: { registry } });
    await scenario.startBroker();
    expect(await codeOf(scenario.client.open("x"))).toBe(chainUnreachable);
    const health = await scenario.client.http.send({ method: "GET", path: "/health/ready" });
    expect([health.status, health.text.toLowerCase()]).toEqual([503, expect.stringContaining(registry)]);
    // Another organisation's broker deploys the registry.
    using folder = createTempFolder();
    const group = { id: "1", endpoints: [scenario.anvil.url], privateKey: devKey(1) };
    await using deployer = await startBroker({ dataDir: folder.path, env: groupsEnv([group]) });
    expect(deployer.url).toMatch(/^http/);
    await scenario.publish();
    await scenario.expectRecovered();
  });
});
