import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toQuantity } from "@stele/eth/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serve } from "../gateway/testing/serve.ts";
import { AnvilChain, someEvents } from "../ledger/evm/proof/testing/anvil-chain.ts";
import { textBytesMaxDefault } from "./collect-text.ts";
import { runVerify, type VerifyOutcome } from "./run-verify.ts";
import { brokerOf, type ClaimOptions, honestClaims } from "./testing/chain-broker.ts";
import { serveNode } from "./testing/serve-node.ts";

const topic = "verify/odd";

/** The address with a user, a password and two keys, as those of public nodes have. */
function withKeys(url: string): string {
  return `${url.replace("//", "//somebody:password@")}/v3/0123456789abcdef?token=fedcba9876543210`;
}

describe("stele verify with a malicious node", () => {
  let folder: string;
  let of: ClaimOptions & { readonly chain: AnvilChain };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "stele-verify-"));
    const chain = await AnvilChain.start();
    await chain.open(topic);
    of = { chain, topic, batches: await chain.publish(topic, [someEvents(3)]) };
  });

  afterAll(async () => {
    await of.chain.stop();
    await rm(folder, { recursive: true });
  });

  /** Runs the command against an honest broker and a node that changes the chain's answers. */
  async function run(
    words: readonly string[],
    change: (method: string, result: unknown) => unknown,
    toRpc = (url: string): string => url,
  ): Promise<VerifyOutcome> {
    await using server = await serve(brokerOf(honestClaims(of), of));
    const node = await serveNode(of.chain, undefined, change);
    const outcome = await runVerify([...words, "--broker", server.url, "--rpc", toRpc(node.url)], { env: {} });
    await node.close();
    return outcome;
  }

  test("remembers a registry for the verified chain, even if the node later names another chain", async () => {
    const file = join(folder, "known-registries.json");
    const [eventId = ""] = honestClaims(of).keys();
    let asked = 0;
    const outcome = await run([eventId, "--remember", "--known-registries", file], (method, result) => {
      if (method !== "eth_chainId") return result;
      asked += 1;
      return asked === 1 ? result : "0x1";
    });
    expect(outcome).toMatchObject({ exitCode: 0, problem: expect.stringContaining("trusted on first use") });
    const chainId = Number(await of.chain.provider.request({ method: "eth_chainId" }));
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ chains: [{ chainId }] });
  });

  test("asks for --rpc or --admin-url if the broker's address does not serve the chain", async () => {
    await using server = await serve(brokerOf(honestClaims(of), of));
    const [eventId = ""] = honestClaims(of).keys();
    const outcome = await runVerify([eventId, "--broker", server.url, "--remember"], { env: {} });
    expect(outcome).toMatchObject({
      exitCode: 2,
      problem: expect.stringMatching(/does not answer.*pass --rpc .* or --admin-url/),
    });
  });

  test.each([
    ["has no digits", "0x"],
    ["is missing", null],
    ["is not a hexadecimal number", "one"],
    ["is 2^53, which is not a safe integer", "0x20000000000000"],
  ])("remembers nothing if the chain's id %s", async (_, chainId) => {
    const file = join(folder, `${chainId}.json`);
    const [eventId = ""] = honestClaims(of).keys();
    const words = [eventId, "--remember", "--known-registries", file];
    const outcome = await run(words, (method, result) => (method === "eth_chainId" ? chainId : result));
    expect(outcome).toMatchObject({ exitCode: 2, problem: expect.stringContaining("does not answer like a node") });
    expect(await run(words, (_, result) => result)).toMatchObject({ exitCode: 0 }); // The file is not damaged.
  });

  test("ends at once if the node claims more blocks than a chain can have, and returns no logs", async () => {
    const outcome = await run(["--topic", topic, "--registry", of.chain.registry], (method, result) => {
      if (method === "eth_blockNumber") return toQuantity(Number.MAX_SAFE_INTEGER);
      return method === "eth_getLogs" ? [] : result;
    });
    expect(outcome).toMatchObject({ exitCode: 2, problem: expect.stringContaining("claims block 9007199254740991") });
  });

  test("verifies a topic that gets events between two requests to the node", async () => {
    let asked = 0;
    const outcome = await run(["--topic", topic, "--registry", of.chain.registry], (method, result) => {
      if (method !== "eth_blockNumber") return result;
      asked += 1;
      return asked === 1 ? toQuantity(Number(result) - 1) : result; // The block of the events came after the first answer.
    });
    expect(outcome).toMatchObject({
      exitCode: 0,
      output: expect.stringContaining("verified: events 1 to 3"),
      problem: "",
    });
  });

  test.each(["eth_call", "eth_getLogs"])("reports why the node refuses %s", async (refused) => {
    await using server = await serve(brokerOf(honestClaims(of), of));
    const message = "limit exceeded: too many calls of the chain are waiting, try later";
    const busy = await serveNode(of.chain, ({ method }) =>
      method === refused ? { code: -32005, message } : undefined,
    );
    const words = ["--topic", topic, "--broker", server.url, "--rpc", busy.url];
    const unpinned = await runVerify([...words, "--remember"], { env: { XDG_CONFIG_HOME: folder } });
    const pinned = await runVerify([...words, "--registry", of.chain.registry], { env: {} });
    await busy.close();
    const outcome = { exitCode: 2, output: "", problem: expect.stringMatching(`^stele verify: (.*: )?${message}\n$`) };
    expect([unpinned, pinned]).toEqual([outcome, outcome]);
  });

  test.each([
    ["refuses", "refused", /the logs of blocks [0-9]+ to [0-9]+: no such method\n$/],
    ["answers too long", "long", /the logs of block [0-9]+: the node at .* returned more than [0-9]+ bytes\n$/],
  ])("names the blocks whose logs the node %s", async (_, how, problem) => {
    await using server = await serve(brokerOf(honestClaims(of), of));
    const long = ["x".repeat(textBytesMaxDefault)];
    const refuse = ({ method }: { readonly method: string }) =>
      method === "eth_getLogs" && how === "refused" ? { code: -32601, message: "no such method" } : undefined;
    const odd = await serveNode(of.chain, refuse, (method, result) => (method === "eth_getLogs" ? long : result));
    const words = ["--topic", topic, "--broker", server.url, "--rpc", odd.url, "--registry", of.chain.registry];
    expect(await runVerify(words, { env: {} })).toMatchObject({ exitCode: 2, problem: expect.stringMatching(problem) });
    await odd.close();
  });

  test("asks again, and for the same blocks, while the node is busy", async () => {
    await using server = await serve(brokerOf(honestClaims(of), of));
    const message = "limit exceeded: too many calls of the chain are waiting, try later";
    const asked: unknown[] = [];
    const busy = await serveNode(of.chain, ({ method, params }) => {
      if (method !== "eth_getLogs") return undefined;
      asked.push(params);
      return asked.length === 1 ? { code: -32005, message } : undefined;
    });
    const words = ["--topic", topic, "--broker", server.url, "--rpc", busy.url, "--registry", of.chain.registry];
    expect(await runVerify(words, { env: {} })).toMatchObject({ exitCode: 0, problem: "" });
    await busy.close();
    expect(asked[1]).toEqual(asked[0]);
  });

  test("verifies a topic whose logs the node returns newest first, and twice", async () => {
    const name = "verify/disordered";
    await of.chain.open(name);
    const batches = await of.chain.publish(name, [someEvents(2), someEvents(2)]);
    const disordered = { chain: of.chain, topic: name, batches };
    await using server = await serve(brokerOf(honestClaims(disordered), disordered));
    const node = await serveNode(of.chain, undefined, (method, result) =>
      method === "eth_getLogs" && Array.isArray(result) ? [...result.toReversed(), ...result] : result,
    );
    const words = ["--topic", name, "--broker", server.url, "--rpc", node.url, "--registry", of.chain.registry];
    expect(await runVerify(words, { env: {} })).toMatchObject({ exitCode: 0, problem: "" });
    await node.close();
  });

  test("shows no key in the node's address", async () => {
    const [eventId = ""] = honestClaims(of).keys();
    const pinned = ["--registry", of.chain.registry, "-o", "json"];
    for (const words of [[eventId], ["--topic", topic]]) {
      const served = await run([...words, ...pinned], (_, result) => result, withKeys);
      const failing = await run([...words, ...pinned], () => null, withKeys);
      expect([served.exitCode, failing.exitCode]).toEqual([0, 2]);
      expect(JSON.stringify([served, failing])).not.toMatch(/somebody|password|abcdef|fedcba/);
    }
  });

  test.each([null, {}, { topics: 1 }])("exits 2, not 1, for a log that is %j", async (log) => {
    const words = ["--topic", topic, "--registry", of.chain.registry];
    const outcome = await run(words, (method, result) => (method === "eth_getLogs" ? [log] : result));
    expect(outcome).toEqual({ exitCode: 2, output: "", problem: expect.stringMatching(/^stele verify: .+\n$/) });
  });
});
