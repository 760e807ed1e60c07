import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeEvents } from "@stele/wire";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, GroupHealth } from "../engine/broker.ts";
import { serve } from "../gateway/testing/serve.ts";
import { AnvilChain, someEvents } from "../ledger/evm/proof/testing/anvil-chain.ts";
import { blockHash, prove, type Published } from "../ledger/evm/proof/testing/prove.ts";
import { runVerify, type VerifyOutcome } from "./run-verify.ts";
import { serveNode } from "./testing/serve-node.ts";
import { brokerOf, type Claims, honestClaims, toClaim } from "./testing/chain-broker.ts";

const topic = "verify/it";
/** A port where nobody listens. */
const nobody = "http://127.0.0.1:9";

let folder: string;
let chain: AnvilChain;
let batches: readonly Published[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "stele-verify-"));
  chain = await AnvilChain.start();
  await chain.open(topic);
  batches = [
    ...(await chain.publish(topic, [someEvents(1), someEvents(40)])),
    ...(await chain.publish(topic, [someEvents(3)])),
  ];
});

afterAll(async () => {
  await chain.stop();
  await rm(folder, { recursive: true });
});

/** Runs the command against a broker with these claims. */
async function run(
  words: readonly string[],
  options: {
    readonly claims?: Claims;
    readonly operations?: Partial<Broker>;
    readonly topic?: Topic;
    readonly isPinned?: boolean;
  } = {},
): Promise<VerifyOutcome> {
  const of = options.topic ?? { chain, topic, batches };
  const claims = options.claims ?? honestClaims(of);
  await using server = await serve({ ...brokerOf(claims, of), ...options.operations });
  const pinned = options.isPinned === false || words.includes("--registry") ? [] : ["--registry", of.chain.registry];
  return await call([...words, ...pinned, "--broker", server.url, "--rpc", of.chain.url]); // Awaited here: the server closes at the end of this block.
}

/** Runs the command as a user without known registries. */
const call = (words: readonly string[]): Promise<VerifyOutcome> =>
  runVerify(words, { env: { XDG_CONFIG_HOME: join(folder, "config") } });

type Topic = Parameters<typeof brokerOf>[1];

const eventIds = (): string[] => [...honestClaims({ chain, topic, batches }).keys()];
const idAt = (index: number): string => eventIds().at(index) ?? "";

async function toFile(text: string): Promise<string> {
  const path = join(folder, "proof.json");
  await writeFile(path, text);
  return path;
}

describe("stele verify <eventId>", () => {
  test.each([0, 1, 20, -1])("verifies the event at index %i", async (index) => {
    const outcome = await run([idAt(index), "--registry", chain.registry]);
    expect(outcome).toMatchObject({ exitCode: 0, problem: "" });
    expect(outcome.output).toContain(`verified: event ${idAt(index)} is on the chain\n`);
    expect(outcome.output).not.toMatch(/pass --/);
  });

  test("exits 2 without a pinned registry", async () => {
    expect(await run([idAt(0)], { isPinned: false })).toEqual({
      exitCode: 2,
      output: "",
      problem: expect.stringMatching(new RegExp(`no registry is pinned.* ${chain.registry}`)),
    });
  });

  test("refutes an event of an unexpected publisher", async () => {
    const [, publisher = ""] = /by (0x\w+)/.exec((await run([idAt(0)])).output) ?? [];
    const other = `0x${"ab".repeat(20)}`;
    expect(await run([idAt(0), "--publisher", `${other},${publisher}`])).toMatchObject({ exitCode: 0 });
    expect(await run([idAt(0), "--publisher", other])).toMatchObject({
      exitCode: 1,
      output: expect.stringMatching(/^refuted at step publisher: /),
    });
  });

  test("prints the report as JSON with --json", async () => {
    const { output } = await run([idAt(1), "--json"]);
    expect(JSON.parse(output)).toMatchObject({
      status: "verified",
      event: { eventId: idAt(1), topic, content: Buffer.from("event 0").toString("base64"), registry: chain.registry },
      blockHashFrom: chain.url,
    });
  });

  test("refutes an event whose content the broker has changed", async () => {
    const claims = honestClaims({ chain, topic, batches });
    const event = claims.get(idAt(1));
    if (event === undefined) throw new Error("no event");
    claims.set(idAt(1), { ...event, content: Buffer.from("forged") });
    const { exitCode, output } = await run([idAt(1)], { claims });
    expect({ exitCode, output }).toEqual({ exitCode: 1, output: expect.stringMatching(/^refuted at step batch: /) });
  });

  test("refutes a proof of another event", async () => {
    const { getProof } = brokerOf(honestClaims({ chain, topic, batches }), { chain, topic, batches });
    const other: Broker["getProof"] = async (by, call) => getProof?.(by, { ...call, eventId: idAt(0) }) as never; // brokerOf always has getProof.
    expect(await run([idAt(1)], { operations: { getProof: other } })).toMatchObject({ exitCode: 1 });
  });

  test("refutes a registry other than the trusted one", async () => {
    const { exitCode, output } = await run([idAt(0), "--registry", `0x${"AB".repeat(20)}`]);
    expect({ exitCode, output }).toEqual({ exitCode: 1, output: expect.stringMatching(/^refuted at step topic: /) });
  });

  test.each([
    ["an event that the broker does not have", [`00000000-1-1`]],
    ["an unreachable broker", ["00000000-1-1", "--broker", nobody]],
    ["no event", []],
    ["two events", ["00000000-1-1", "00000000-1-1"]],
    ["an unknown flag", ["00000000-1-1", "--rcp", nobody]],
    ["a flag without value", ["00000000-1-1", "--group"]],
    ["a malformed registry", ["00000000-1-1", "--registry", "0x12"]],
    ["a malformed publisher", ["00000000-1-1", "--publisher", `0x${"ab".repeat(20)},`]],
    ["--remember without a node", ["a file", "--block-hash", `0x${"00".repeat(32)}`, "--remember"]],
    ["a missing file", [join(tmpdir(), "no such file")]],
    ["a flag of the other form", ["00000000-1-1", "--from", "1"]],
  ])("exits 2 for %s", async (_, words) => {
    const outcome = words.includes("--broker") ? await call(words) : await run(words);
    expect(outcome).toEqual({ exitCode: 2, output: "", problem: expect.stringMatching(/^stele verify: .+\n$/) });
  });
});

describe("stele verify <file>", () => {
  test("verifies a proof without a broker, against a node or a known hash", async () => {
    const [, batch] = batches;
    if (batch === undefined) throw new Error("no batch");
    const proof = await prove(chain, batch, 7);
    const file = await toFile(JSON.stringify(proof, null, 2));
    expect(await call([file, "--rpc", chain.url, "--registry", chain.registry])).toMatchObject({ exitCode: 0 });
    const hash = await blockHash(chain.provider, batch.blockNumber);
    const pinned = ["--registry", chain.registry];
    expect(await call([file, "--block-hash", hash, ...pinned])).toMatchObject({ exitCode: 0 });
    expect(await call([file, "--block-hash", hash])).toMatchObject({ exitCode: 2 });
    const wrong = await blockHash(chain.provider, batch.blockNumber - 1);
    expect(await call([file, "--block-hash", wrong, ...pinned])).toMatchObject({ exitCode: 1 });
    const absent = await toFile(JSON.stringify(proof).replace(/(eventId":"\w+-\d+)-\d+/, "$1-999999"));
    expect(await call([absent, "--rpc", chain.url])).toMatchObject({ exitCode: 2 });
    expect(await call([file, "--rpc", nobody])).toMatchObject({ exitCode: 2 });
  });

  test("exits 2 for a proof from another chain, but refutes one that is invalid on every chain", async () => {
    const other = await AnvilChain.start(["--chain-id", "99"]);
    try {
      await other.open(topic);
      const [batch] = await other.publish(topic, [someEvents(1)]);
      if (batch === undefined) throw new Error("no batch");
      const text = JSON.stringify(await prove(other, batch, 0));
      const outcome = await call([await toFile(text), "--rpc", chain.url]);
      expect(outcome).toMatchObject({ exitCode: 2, output: "" });
      expect(outcome.problem).toMatch(/block \d+ of the node at .* has the hash .*: another chain, or a reorg/);
      const forged = await toFile(text.replace(/"content":"0x\w\w/, '"content":"0xff'));
      expect(await call([forged, "--rpc", chain.url])).toMatchObject({
        exitCode: 1,
        output: expect.stringMatching(/^refuted at step batch: /),
      });
    } finally {
      await other.stop();
    }
  });

  test.each(["", "garbage", "{}", "\u0000".repeat(100), `{"version":1}`])("refutes %j", async (text) => {
    const outcome = await call([await toFile(text), "--rpc", chain.url]);
    expect(outcome).toMatchObject({ exitCode: 1, output: expect.stringMatching(/^refuted at step form: /) });
  });
});

async function factsOf(of: AnvilChain) {
  const block = await of.ask<{ hash: string }>("eth_getBlockByNumber", "0x0", false);
  return { chainId: Number(await of.ask<string>("eth_chainId")), genesisHash: block.hash };
}

function health(groupId: string, chainFacts: Record<string, string | number>): GroupHealth {
  return { groupId, ready: true, reason: undefined, indexedBlock: 9, chain: chainFacts };
}

describe("a node of another chain than the group's", () => {
  test.each([
    ["chain id", { chainId: 99 }],
    ["first block", { genesisHash: `0x${"9".repeat(64)}` }],
  ])("exits 2 for a chain with another %s, for an event and for a topic", async (_, difference) => {
    const own = await factsOf(chain);
    const groups = [health("2", own), health("1", { ...own, ...difference })];
    for (const words of [[idAt(0)], ["--topic", topic]]) {
      const outcome = await run(words, { operations: { health: () => groups } });
      expect(outcome).toMatchObject({ exitCode: 2, output: "" });
      expect(outcome.problem).toContain(`the node at ${chain.url} serves another chain than group 1 (chain `);
      expect(outcome.problem).toContain("; pass --rpc of a node of the group's chain");
      expect(await run([...words, "--group", "2"], { operations: { health: () => groups } })).toMatchObject({
        exitCode: 0,
      });
    }
  });

  test("refutes a proof of another chain's block if the broker names its chain; else exits 2", async () => {
    const own = await factsOf(chain);
    const other = await AnvilChain.start(["--chain-id", "99"]);
    try {
      await other.open(topic);
      const elsewhere = { chain: other, topic, batches: await other.publish(topic, [someEvents(1)]) };
      const claims = honestClaims(elsewhere);
      const words = [[...claims.keys()][0] ?? ""];
      const named = { ...brokerOf(claims, elsewhere), health: () => [health("1", own)] };
      expect(await run(words, { operations: named })).toMatchObject({
        exitCode: 1,
        output: expect.stringMatching(/^refuted at step header: /),
      });
      const unnamed = { ...named, health: () => [] };
      expect(await run(words, { operations: unnamed })).toMatchObject({ exitCode: 2 });
    } finally {
      await other.stop();
    }
  });

  test.each([[[]], [["--topic", topic]]])("exits 2 without --rpc if the broker serves no chain: %j", async (words) => {
    const of = { chain, topic, batches };
    await using server = await serve(brokerOf(honestClaims(of), of));
    const outcome = await call([...(words.length === 0 ? [idAt(0)] : words), "--broker", server.url]);
    expect(outcome).toMatchObject({ exitCode: 2, output: "" });
    expect(outcome.problem).toContain("pass --rpc of a node of the group's chain");
  });

  test("exits 2 if the node refuses to name its chain", async () => {
    const silent = await serveNode(chain, ({ method }) =>
      method === "eth_chainId" ? { code: -32601, message: "method not found" } : undefined,
    );
    const of = { chain, topic, batches };
    const lie = { ...brokerOf(honestClaims(of), of), health: () => [health("1", { chainId: 1, genesisHash: "0x" })] };
    await using server = await serve(lie);
    const outcome = await call([idAt(0), "--broker", server.url, "--rpc", silent.url]);
    await silent.close();
    expect(outcome).toMatchObject({ exitCode: 2, output: "", problem: expect.stringContaining("method not found") });
  });
});

function change(index: number, fields: object) {
  return (claims: Claims): void => {
    const event = claims.get(idAt(index));
    if (event !== undefined) claims.set(idAt(index), { ...event, ...fields });
  };
}

describe("stele verify --topic", () => {
  const words = ["--topic", topic];

  test.each([
    [[], 44],
    [["--from", "1", "--to", "44"], 44],
    [["--from", "2", "--to", "2"], 1],
    [["--from=40", "--to=43"], 4],
    [["--from-block", "2"], 44],
  ])("verifies an honest broker with the flags %j", async (range, events) => {
    const outcome = await run([...words, ...range, "--json"]);
    expect(JSON.parse(outcome.output)).toMatchObject({ status: "verified", events, registry: chain.registry });
    expect(outcome.exitCode).toBe(0);
    const human = await run([...words, ...range, "--registry", chain.registry]);
    expect(human.output).toContain("match the chain exactly\n");
  });

  const lies: readonly (readonly [string, object, (claims: Claims) => void])[] = [
    ["lacks an event", { kind: "missing", sequence: 5 }, (claims) => void claims.delete(idAt(4))],
    ["lacks the last event", { kind: "missing", sequence: 44 }, (claims) => void claims.delete(idAt(-1))],
    [
      "has another content",
      { kind: "different", sequence: 1, field: "content" },
      change(0, { content: Buffer.from("x") }),
    ],
    [
      "has an added extension",
      { kind: "different", sequence: 3, field: "extensions" },
      change(2, { extensions: [["a", "b"]] }),
    ],
    [
      "has an added event",
      { kind: "extra", sequence: 45 },
      (claims) => {
        const more = toClaim(topic, { sequence: 45, blockNumber: 1 }, { content: Buffer.from("x"), extensions: [] });
        claims.set(more.eventId, more);
      },
    ],
  ];

  test.each(lies)("refutes a broker that %s", async (_, difference, lie) => {
    const claims = honestClaims({ chain, topic, batches });
    lie(claims);
    const { exitCode, output } = await run([...words, "--json"], { claims });
    expect(JSON.parse(output)).toMatchObject({ status: "refuted", differences: [difference] });
    expect(exitCode).toBe(1);
    expect((await run(words, { claims })).output).toMatch(/^refuted: /);
  });

  test("names malformed batches, and refutes a broker that has an event for one", async () => {
    const strange = "verify/strange";
    await chain.open(strange);
    const good = someEvents(2);
    await chain.sendRawBatches(strange, [
      { count: 2, events: encodeEvents(good) },
      { count: 3, events: encodeEvents(good) },
      { count: 4, events: Buffer.from("garbage, 12b") },
      { count: 4_000_000_000, events: Buffer.from("refused") },
      { count: 1, events: encodeEvents(someEvents(1)), eventsRoot: new Uint8Array(32) },
      { count: 2, events: encodeEvents(good) },
    ]);
    const blockNumber = await chain.head();
    const placed = [1, 11].map((firstSequence) => ({
      topic: strange,
      firstSequence,
      blockNumber,
      events: good,
    }));
    const of = { chain, topic: strange, batches: placed };
    const honest = await run(["--topic", strange], { topic: of });
    expect(honest.exitCode).toBe(0);
    expect(honest.output.match(/malformed .*/g)).toEqual([
      expect.stringMatching(/3 sequences from 3 on have no events \(block \d+: 2 events where 3 were claimed\)/),
      expect.stringMatching(/4 sequences from 6 on have no events/),
      expect.stringMatching(/1 sequences from 10 on have no events .*another root/),
    ]);
    const claims = honestClaims(of);
    const invented = toClaim(strange, { sequence: 3, blockNumber }, { content: Buffer.from("x"), extensions: [] });
    claims.set(invented.eventId, invented);
    const { exitCode, output } = await run(["--topic", strange, "--json"], { topic: of, claims });
    expect(JSON.parse(output)).toMatchObject({ differences: [{ kind: "extra", sequence: 3 }] });
    expect(exitCode).toBe(1);
  });

  test.each<[what: string, words: string[], problem?: string]>([
    ["a topic that does not exist anywhere", ["--topic", "nothing"]],
    ["a range beyond the topic", [...words, "--to", "45"], "the topic has no event after 44: .+"],
    ["an invalid topic name", ["--topic", "a/#"]],
    ["a range that ends before it begins", [...words, "--from", "5", "--to", "4"]],
    ["a --from-block after the first event", [...words, "--from-block", "100000"]],
    ["an extra argument", [...words, "more"]],
    ["a registry without the topic", [...words, "--registry", `0x${"ab".repeat(20)}`]],
  ])("exits 2 for %s", async (_, words, problem = ".+") => {
    expect(await run(words)).toEqual({
      exitCode: 2,
      output: "",
      problem: expect.stringMatching(new RegExp(`^stele verify: ${problem}\n$`)),
    });
  });

  test("refutes and counts all events of an unexpected publisher", async () => {
    const other = `0x${"ab".repeat(20)}`;
    const { exitCode, output } = await run([...words, "--from", "2", "--publisher", other, "--json"]);
    const report = JSON.parse(output);
    expect(report).toMatchObject({ status: "refuted", counts: { foreign: 43, missing: 0, different: 0, extra: 0 } });
    expect(exitCode).toBe(1);
    const [{ publisher }] = report.differences;
    expect((await run([...words, "--publisher", other])).output).toContain(`published by ${publisher}`);
    expect((await run([...words, "--publisher", other, "--publisher", publisher])).exitCode).toBe(0);
  });

  test("reads smaller ranges if the node refuses large ones", async () => {
    const refusing = await serveNode(chain, ({ method, params }) => {
      const [filter] = params as readonly [{ fromBlock: string; toBlock: string }];
      const isLarge = method === "eth_getLogs" && Number(filter.toBlock) - Number(filter.fromBlock) > 1;
      return isLarge ? { code: -32005, message: "query returned more than 10000 results" } : undefined;
    });
    await using server = await serve(brokerOf(honestClaims({ chain, topic, batches }), { chain, topic, batches }));
    const outcome = await call([...words, "--registry", chain.registry, "--broker", server.url, "--rpc", refusing.url]);
    await refusing.close();
    expect(outcome).toMatchObject({ exitCode: 0 });
  });

  test("detects a node that omits a log", async () => {
    const hiding = await serveNode(chain, undefined, (method, result) => {
      return method === "eth_getLogs" && Array.isArray(result) ? result.toSpliced(1, 1) : result;
    });
    await using server = await serve(brokerOf(honestClaims({ chain, topic, batches }), { chain, topic, batches }));
    const outcome = await call([...words, "--registry", chain.registry, "--broker", server.url, "--rpc", hiding.url]);
    await hiding.close();
    expect(outcome).toMatchObject({ exitCode: 2, problem: expect.stringContaining("ask another node") });
  });
});

test("stele verify --help prints the usage", async () => {
  expect(await call(["--help"])).toMatchObject({
    exitCode: 0,
    output: expect.stringContaining("Usage: stele verify"),
  });
});
