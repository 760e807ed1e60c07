import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { portableKeccak256 as keccak } from "@stele/eth";
import { expect, test } from "vitest";
import { batchEventsMax } from "../batch/decode-events.ts";
import { checkProof } from "./proof-schema.ts";
import { samples } from "./testing/samples.ts";
import { verifyProof } from "./verify-proof.ts";

const page = readFileSync(new URL("../../../docs/proofs.md", import.meta.url), "utf8");

/** The definition of a term in docs/proofs.md. */
function definitionOf(term: string): string {
  const [, definition] = new RegExp(`^\\| ${term} \\| (.*) \\|$`, "m").exec(page) ?? [];
  if (definition === undefined) throw new Error(`docs/proofs.md does not define ${term}`);
  return definition;
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

test.each(samples)("docs/proofs.md defines log, digest and topic address as in the proof of $what", (sample) => {
  const { proof, blockHash } = sample;
  const [, name = "", fields = ""] = /`(\w+)\((.*)\)`/.exec(definitionOf("log")) ?? [];
  const types = fields.split(", ").map((field) => field.split(" ")[0]);
  expect(proof.receipt.nodes.at(-1)).toContain(hex(keccak(Buffer.from(`${name}(${types.join(",")})`))));

  expect(definitionOf("digest")).toMatch(/^the first 8 hex digits of SHA-256 .* `<digest>-<sequence>-<block number>`/);
  const digest = createHash("sha256").update(proof.event.topic).digest("hex").slice(0, 8);
  expect(proof.event.eventId).toMatch(new RegExp(`^${digest}-\\d+-\\d+$`));

  const parts = [...definitionOf("topic's address").matchAll(/`0x(\w+)`/g)];
  const [first, head, tail, list, nonce] = parts.map(([, digits = ""]) => Buffer.from(digits, "hex"));
  if (!first || !head || !tail || !list || !nonce)
    throw new Error("the definition of a topic's address has other parts");
  const registry = Buffer.from(proof.registry.slice(2), "hex");
  const implementation = keccak(Buffer.concat([list, registry, nonce])).subarray(-20);
  const code = Buffer.concat([head, implementation, tail]);
  const place = Buffer.concat([first, registry, keccak(Buffer.from(proof.event.topic)), keccak(code)]);
  const topicAddress = `0x${hex(keccak(place).subarray(-20))}`;
  expect(verifyProof(proof, blockHash)).toMatchObject({ status: "verified", event: { topicAddress } });
});

test("docs/proofs.md gives the limits that a proof in its one form keeps", () => {
  expect(definitionOf("`events`")).toContain(`at most ${batchEventsMax.toLocaleString("en")} events`);
  const limits =
    /^indexes are below 2\^(\d+); `path` has at most (\d+) hashes, `nodes` at most (\d+); .*; no text has half of a surrogate pair$/;
  const [bits = 0, pathMax = 0, nodesMax = 0] = (limits.exec(definitionOf("limits")) ?? []).slice(1).map(Number);
  const [sample] = samples;
  if (sample === undefined) throw new Error("there is no sample");
  const { event, batch, receipt } = sample.proof;
  const hash = `0x${"00".repeat(32)}`;
  const formOf = (change: object): string => checkProof({ ...sample.proof, ...change }).status;
  const largest = [
    { batch: { index: 2 ** bits - 1, path: Array.from({ length: pathMax }, () => hash) } },
    { receipt: { ...receipt, nodes: Array.from({ length: nodesMax }, () => hash) } },
    { event: { ...event, topic: "\u{1F4A1}" } },
  ];
  expect(largest.map(formOf)).toEqual(["proof", "proof", "proof"]);
  const larger = [
    { batch: { ...batch, index: 2 ** bits } },
    { batch: { ...batch, path: Array.from({ length: pathMax + 1 }, () => hash) } },
    { receipt: { ...receipt, nodes: Array.from({ length: nodesMax + 1 }, () => hash) } },
    { event: { ...event, topic: "\uD83D" } },
    { event: { ...event, extensions: [["key", "\uDCA1"]] } },
  ];
  expect(larger.map(formOf)).toEqual(larger.map(() => "malformed"));
});
