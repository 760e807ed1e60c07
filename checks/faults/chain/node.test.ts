import { getContractAddress } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { devKey, startAnvil } from "../../harness/anvil.ts";
import { startBroker } from "../../harness/broker-process.ts";
import { codeOf } from "../../harness/client.ts";
import { groupsEnv } from "../../harness/group.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { ChainTrial } from "../support/chain-trial.ts";

const chainUnreachable = 200_205;
const refusals = 8;
const untilAnsweredEvents = 40;
/** A contract that anvil brings along, which is no registry. */
const otherContract = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

describe("a chain (issue: faults)", () => {
  it.concurrent("that ends and comes back while publishing, twice, its state kept and its pool lost", async () => {
    await using trial = await ChainTrial.start();
    for (let time = 0; time < 2; time += 1) {
      await trial.stopChain();
      await trial.untilRefused(refusals);
      await trial.resumeChain();
      await trial.untilAcknowledged(untilAnsweredEvents);
    }
    await trial.expectRecovered();
  });

  it.concurrent("that ends and comes back at once: what its pool had is sent again", async () => {
    await using trial = await ChainTrial.start();
    for (let time = 0; time < 3; time += 1) {
      await trial.stopChain();
      await trial.resumeChain();
      await trial.untilAcknowledged(untilAnsweredEvents);
    }
    await trial.expectRecovered();
  });

  it.concurrent.each([
    ["another chain id", ["--chain-id", "99"]],
    ["the same chain id and another first block", []],
  ])("that gives way to one with %s is not written to, and taken up again once it is back", async (_what, args) => {
    await using trial = await ChainTrial.start();
    await trial.stopChain();
    await using other = await startAnvil({ blockTimeS: 0.5, args });
    trial.proxy.retarget(other.url);
    await trial.untilRefused(refusals);
    await until("the broker tells that it is not ready", async () => !(await trial.client.isReady()));
    expect(await other.request("eth_getTransactionCount", [privateKeyToAddress(devKey(0)), "pending"])).toBe("0x0");
    await trial.resumeChain();
    await trial.expectRecovered();
  });
});

describe("a registry's address (issue: faults)", () => {
  it.concurrent("with other code: the group is down and says why, and publishes are refused", async () => {
    await using trial = await ChainTrial.prepare({ group: { registry: otherContract } });
    await trial.startBroker();
    expect(await codeOf(trial.client.open("x"))).toBe(chainUnreachable);
    const health = await trial.client.http.send({ method: "GET", path: "/health/ready" });
    expect(health.status).toBe(503);
    expect(health.text.toLowerCase()).toContain(otherContract.toLowerCase());
  });

  it.concurrent("without code: the group is down and says why; work begins by itself once the registry is there", async () => {
    const from = privateKeyToAddress(devKey(1));
    const registry = getContractAddress({ from, nonce: 0n }).toLowerCase();
    await using trial = await ChainTrial.prepare({ group: { registry } });
    await trial.startBroker();
    expect(await codeOf(trial.client.open("x"))).toBe(chainUnreachable);
    const health = await trial.client.http.send({ method: "GET", path: "/health/ready" });
    expect([health.status, health.text.toLowerCase()]).toEqual([503, expect.stringContaining(registry)]);
    // Another organisation's broker makes it.
    using folder = createTempFolder();
    const group = { id: "1", endpoints: [trial.anvil.url], privateKey: devKey(1) };
    await using deployer = await startBroker({ dataDir: folder.path, env: groupsEnv([group]) });
    expect(deployer.url).toMatch(/^http/);
    await trial.publish();
    await trial.expectRecovered();
  });
});
