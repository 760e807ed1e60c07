import { type Hex, Signer, toHex } from "@stele/eth/node";
import { expect, test } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { FinalityPolicy } from "../read/finality.ts";
import { testKey } from "../testing/evm-harness.ts";
import { hashOf } from "../testing/writer-world.ts";
import { FeePolicy } from "../write/fee-policy.ts";
import { completeDeployment } from "./deploy-registry.ts";
import { createdAddress } from "./find-registry.ts";

const transaction = (mark: number): { readonly hash: Hex; readonly raw: Uint8Array } => {
  const raw = new Uint8Array(8).fill(mark);
  return { hash: hashOf(toHex(raw)), raw };
};
const [newest, older, oldest] = [transaction(3), transaction(2), transaction(1)];

/**
 * Completes a deployment that has three transactions with the nonce 0, on a chain node that refuses some of them and includes none. Returns its outcome, the
 * transactions that the chain node accepted, and the number of checks.
 */
async function complete(refusals: ReadonlyMap<string, string>, { deadlineMs = 1_000, nextNonce = "0x0" } = {}) {
  const clock = new VirtualClock();
  const accepted: string[] = [];
  let checks = 0;
  const request = async ({ method, params = [] }: { method: string; params?: readonly unknown[] }) => {
    const raw = String(params[0]);
    if (method === "eth_getTransactionCount") {
      checks += 1;
      return nextNonce;
    }
    if (method !== "eth_sendRawTransaction") return null;
    const message = refusals.get(raw);
    if (message !== undefined) throw Object.assign(new Error(message), { code: -32_000 });
    accepted.push(raw);
    return hashOf(toHex(newest.raw));
  };
  const rpc = new Rpc({ request });
  const signer = new Signer(testKey("deployer"));
  const options = {
    signer,
    fees: new FeePolicy(rpc, { mode: "zero", max: undefined, clock }),
    finality: new FinalityPolicy(rpc, "latest"),
    chainId: 1,
    clock,
    logger: silentLogger,
    deadlineMs,
    journal: undefined,
  };
  const variants = [newest, older, oldest] as const;
  const deployment = { nonce: 0, address: createdAddress(signer.address, 0), variants };
  const outcome = completeDeployment(rpc, options, deployment).catch((error: unknown) => error);
  await clock.advance(deadlineMs + 5_000);
  return { outcome: await outcome, accepted, checks };
}

test("reports the reason and the remedy for the newest transaction of a deployment if the older ones are refused too", async () => {
  const { outcome } = await complete(
    new Map([
      [toHex(newest.raw), "insufficient funds for gas * price + value"],
      [toHex(older.raw), "max fee per gas less than block base fee"],
      [toHex(oldest.raw), "max fee per gas less than block base fee"],
    ]),
  );
  expect(outcome).toMatchObject({
    code: 200202,
    message: expect.stringContaining("insufficient funds"),
    hints: [expect.stringContaining("balance")],
  });
});

test("sends an older transaction of a deployment if the newest is refused", async () => {
  const { outcome, accepted } = await complete(new Map([[toHex(newest.raw), "insufficient funds for gas"]]));
  expect(outcome).toMatchObject({ code: 200205 }); // No block includes it in time.
  expect(accepted).toEqual([toHex(older.raw)]);
});

test("waits for an older transaction of a deployment if the chain node has it and refuses the newest", async () => {
  const { outcome } = await complete(
    new Map([
      [toHex(newest.raw), "replacement transaction underpriced"],
      [toHex(older.raw), "already known"],
    ]),
  );
  expect(outcome).toMatchObject({ code: 200205 });
});

test("checks a deployment about twice a second, and sends it again every few seconds, while no block includes it", async () => {
  const { outcome, accepted, checks } = await complete(new Map(), { deadlineMs: 30_000 });
  expect(outcome).toMatchObject({ code: 200205 });
  expect(checks).toBeGreaterThan(55);
  expect(checks).toBeLessThan(70);
  expect(accepted.length).toBeGreaterThan(5);
  expect(accepted.length).toBeLessThan(10);
});

test("a deployment whose nonce another transaction used is lost after ten checks, even if the deadline is shorter", async () => {
  const { outcome, checks } = await complete(new Map(), { deadlineMs: 100, nextNonce: "0x1" });
  expect({ outcome, checks }).toEqual({ outcome: false, checks: 10 });
});
