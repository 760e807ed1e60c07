import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { groupsOf } from "./derived.ts";
import { type LoadOutcome, loadConfig } from "./load-config.ts";

const key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly argv?: readonly string[];
  readonly file?: string;
}

function load({ env = {}, argv = [], file }: Given): LoadOutcome {
  const flags = file === undefined ? argv : ["--config", "f", ...argv];
  return loadConfig({ env, argv: flags, readFile: () => file ?? "", version: "1" });
}

function groupsFrom(given: Given) {
  const outcome = load(given);
  if (outcome.status !== "loaded") throw new Error(`not loaded: ${JSON.stringify(outcome)}`);
  return groupsOf(outcome.config);
}

/** The problems with these fields of an otherwise valid entry. */
function problemsOf(fields: object, env: Readonly<Record<string, string>> = {}): readonly string[] {
  const entry = { id: "1", endpoints: ["http://127.0.0.1:8545"], ...fields };
  const outcome = load({ argv: ["--groups", JSON.stringify([entry])], env });
  return outcome.status === "refused" ? outcome.problems : [];
}

describe("groups", () => {
  it("without configured groups, there is one group on the embedded chain with the default group's id", () => {
    expect(groupsFrom({ env: { STELE_DEFAULT_GROUP: "main", STELE_TRANSACTION_EVENTS_MAX: "7" } })).toMatchObject([
      { id: "main", endpoints: "embedded", transactionEventsMax: 7, transactionsInFlightMax: 2, finality: "latest" },
    ]);
  });

  it("a transaction on the embedded chain may be larger than on an external chain, unless a setting limits both", () => {
    const external = { id: "2", endpoints: ["http://127.0.0.1:8545"] };
    const groups = JSON.stringify([{ id: "1", endpoints: "embedded" }, external]);
    const sizesOf = (env: Readonly<Record<string, string>>) =>
      groupsFrom({ argv: ["--groups", groups], env }).map((group) => [
        group.transactionEventsMax,
        group.transactionBytesMax,
      ]);
    expect(sizesOf({})).toEqual([
      [4096, 1_000_000],
      [1000, 120_000],
    ]);
    expect(sizesOf({ STELE_TRANSACTION_EVENTS_MAX: "7", STELE_TRANSACTION_BYTES_MAX: "90000" })).toEqual([
      [7, 90_000],
      [7, 90_000],
    ]);
  });

  const entry = { id: "1", endpoints: ["http://127.0.0.1:8545"], finality: 12, transactionsInFlightMax: 3 };
  it.each<Given>([
    { env: { STELE_GROUPS: JSON.stringify([entry]) } },
    { argv: ["--groups", JSON.stringify([entry])] },
    { file: JSON.stringify({ groups: [entry] }) },
  ])("reads the same groups from variable, flag and file: %j", (given) => {
    expect(groupsFrom(given)).toMatchObject([
      { ...entry, fees: "auto", pollMs: 1000, publishTimeoutMs: 30_000, transactionBytesMax: 120_000 },
    ]);
  });

  it("an external chain has 16 transactions in flight by default", () => {
    expect(groupsFrom({ argv: ["--groups", '[{"id":"1","endpoints":["ws://n"]}]'] })[0]?.transactionsInFlightMax).toBe(
      16,
    );
  });

  it("accepts a STELE_ variable that a group refers to, refuses an unknown one, and reports one that a group refers to but is not set", () => {
    const signer = { privateKeyEnv: "STELE_ORG_KEY" };
    expect(problemsOf({ signer }, { STELE_ORG_KEY: key })).toEqual([]);
    expect(problemsOf({ signer }, { STELE_ORG_KEYS: key, STELE_ORG_KEY: key })).toEqual([
      "STELE_ORG_KEYS is not a known variable",
    ]);
    expect(problemsOf({ signer })).toEqual(["STELE_ORG_KEY is not set, but a group's signer needs it"]);
  });

  it.each<[object, string]>([
    [{ endpoint: "x" }, '--groups: groups[0]: "endpoint" is not a known field; did you mean endpoints?'],
    [{ id: "a b" }, '--groups: groups[0].id: "a b" is not 1 to 64 printable ASCII characters without a space'],
    [
      { endpoints: "http://n" },
      '--groups: groups[0].endpoints: "http://n" is not "embedded" or a list of 1 to 8 different addresses, each http(s)://…, ws(s)://… or ipc:/path',
    ],
    [
      { endpoints: ["http://n", "ftp://n"] },
      '--groups: groups[0].endpoints: entry 2, "ftp://n", is not http(s)://…, ws(s)://… or ipc:/path',
    ],
    [{ endpoints: [] }, "--groups: groups[0].endpoints: a list of 0 is not"],
    [
      { endpoints: ["http://a", "http://b", "http://a"] },
      '--groups: groups[0].endpoints: entry 3, "http://a", is the same as entry 1',
    ],
    [{ endpoints: ["http://a", 1] }, "--groups: groups[0].endpoints: entry 2, 1, is not http(s)"],
    [{ fees: "zero", feeMaxGwei: 1 }, 'groups[0].feeMaxGwei has no effect if "fees" is "zero"'],
    [{ endpoints: ["http://a#b"] }, "--groups: groups[0].endpoints: "],
    [
      { finality: "soon" },
      '--groups: groups[0].finality: "soon" is not latest, safe, finalized or an integer from 1 to 10000',
    ],
    [{ finality: 0 }, "--groups: groups[0].finality: 0 is not"],
    [{ fees: "free" }, '--groups: groups[0].fees: "free" is not one of auto, eip1559, legacy, zero'],
    [{ topicWriters: "me" }, '--groups: groups[0].topicWriters: "me" is not one of everyone, own'],
    [{ topicWriters: "own", writers: ["0x12"] }, "groups[0].writers: "],
    [{ writers: [`0x${"5e".repeat(20)}`] }, 'groups[0].writers has no effect if "topicWriters" is "everyone"'],
    [{ feeMaxGwei: 0 }, "--groups: groups[0].feeMaxGwei: 0 is not a number above 0"],
    [{ registry: "0x12" }, '--groups: groups[0].registry: "0x12" is not "deploy" or an address'],
    [{ chainId: "1" }, '--groups: groups[0].chainId: "1" is not an integer from 1'],
    [{ pollMs: 1 }, "--groups: groups[0].pollMs: 1 is not an integer from 10 to 60000"],
    [{ transactionBytesMax: 2000 }, "groups[0].transactionBytesMax must be at least 70144 to carry the longest event"],
    [{ endpoints: undefined }, "--groups: groups[0].endpoints is missing"],
    [{ id: "2" }, 'STELE_DEFAULT_GROUP: no group has the id "1"; the ids are 2'],
    [
      { endpoints: "embedded", registry: "deploy" },
      "groups[0].registry has no effect on the embedded chain: remove it",
    ],
  ])("refuses a group with %j", (fields, problem) => {
    const problems = problemsOf(fields);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
  });

  it.each([
    ["[]", "the value is not a JSON array of 1 to 32 groups"],
    ["{", "the value is not a JSON array of 1 to 32 groups"],
    ["[1]", "groups[0] is not an object"],
    ['[{"id":"1","endpoints":"embedded"},{"id":"1","endpoints":["http://n"]}]', '"1" is the id of more than one group'],
    ['[{"id":"1","endpoints":"embedded"},{"id":"2","endpoints":"embedded"}]', "more than one group is on the embedded"],
  ])("refuses the groups setting %s", (text, problem) => {
    const outcome = load({ argv: ["--groups", text] });
    expect(outcome.status === "refused" && outcome.problems).toEqual([expect.stringContaining(problem)]);
  });

  it("shows no key in a problem, nor in --check-config", () => {
    const endpoints = ["https://bob:hunter2@node.example/v3/0123456789abcdef", "wss://n.example?key=abcdef0123"];
    const wrong = [
      problemsOf({ endpoints: [...endpoints, "ftp://n/0123456789abcdef"] }),
      problemsOf({ signer: { privateKey: key } }),
      problemsOf({ signer: key }),
      problemsOf({ endpoints, privateKey: key }),
      problemsOf({ signer: { privateKeyEnv: key } }),
    ];
    for (const problems of wrong) expect(problems.length).toBeGreaterThan(0);
    const groups = JSON.stringify([{ id: "1", endpoints, signer: { privateKeyEnv: "ORG_KEY" } }]);
    const outcome = load({ argv: ["--check-config", "--groups", groups], env: { ORG_KEY: key } });
    const output = outcome.status === "checked" ? outcome.output : "";
    expect(output).toContain(
      '"endpoints":["https://node.example/…","wss://n.example/…"],"signer":{"privateKeyEnv":"ORG_KEY"}',
    );
    for (const secret of [key, "0123456789abcdef", "hunter2", "abcdef0123"]) {
      expect(output + JSON.stringify(wrong)).not.toContain(secret);
    }
  });
});

describe("docs/groups.md", () => {
  const page = readFileSync(new URL("../../../docs/groups.md", import.meta.url), "utf8");
  const examples = [...page.matchAll(/```json\n(.*?)\n```/gs)].map(([, text = ""]) => text);
  const env = { ORDERS_KEY: key, STELE_SIGNER_PASSWORD: "secret" };

  it("has its five examples", () => {
    expect(examples).toHaveLength(5);
  });

  it.each(examples)("loads the example %s", (file) => {
    const groups = groupsFrom({
      file,
      env: Object.fromEntries(Object.entries(env).filter(([name]) => file.includes(name))),
    });
    expect(groups.length).toBeGreaterThan(0);
    for (const { endpoints, signer } of groups) expect(signer === undefined).toBe(endpoints === "embedded");
  });
});
