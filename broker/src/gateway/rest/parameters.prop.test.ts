import { BrokerError } from "@stele/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyCharacter } from "../../lib/testing/any-character.ts";
import { addEncodedPairs, type Parameters } from "./parameters.ts";
import { usedBytes } from "../../lib/testing/collect-garbage.ts";

const text = fc.string({ unit: anyCharacter });
const pairs = fc.uniqueArray(fc.tuple(text, text), { selector: ([name]) => name });

function parse(encoded: string): Parameters {
  const parameters: Parameters = new Map();
  addEncodedPairs(parameters, encoded);
  return parameters;
}

/** The shortest time of several runs: the machine may be busy during one. */
function shortest(task: () => unknown): number {
  const times = Array.from({ length: 5 }, () => {
    const start = performance.now();
    task();
    return performance.now() - start;
  });
  return Math.min(...times);
}

describe("addEncodedPairs", () => {
  it("decodes the output of encodeURIComponent", () => {
    fc.assert(
      fc.property(pairs, (expected) => {
        const encoded = expected.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
        expect([...parse(encoded)]).toEqual(expected);
      }),
    );
  });

  it("decodes the output of URLSearchParams", () => {
    fc.assert(
      fc.property(pairs, (expected) => {
        expect([...parse(String(new URLSearchParams(expected)))]).toEqual(expected);
      }),
    );
  });

  it("decodes a long name in less than half the time of JSON.stringify", () => {
    const name = "\u0001".repeat(2_000_000);
    expect(shortest(() => parse(`${name}=1`))).toBeLessThan(shortest(() => JSON.stringify(name)) / 2);
  });

  it("decodes a text as URLSearchParams does, but refuses malformed and repeated parameters", () => {
    const pieces = fc.array(fc.constantFrom("a", "b", "=", "&", "+", "%", "%41", "%c3%a4", "%ff", "%2", "ä"), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(pieces, (list) => {
        const encoded = list.join("");
        const expected = [...new URLSearchParams(encoded)];
        const names = expected.map(([name]) => name);
        const isRepeated = new Set(names).size < names.length;
        // URLSearchParams, the model, reads invalid UTF-8 as U+FFFD, and keeps a malformed escape unchanged.
        const isMalformed = /%(?![0-9a-f]{2})/i.test(encoded) || expected.flat().join("").includes("\ufffd");
        if (isRepeated || isMalformed) expect(() => parse(encoded)).toThrow(BrokerError);
        else expect([...parse(encoded)]).toEqual(expected);
      }),
    );
  });

  it("a short parameter does not keep its long body in memory", () => {
    const topics: (string | undefined)[] = [];
    const before = usedBytes();
    for (let number = 10; number < 30; number += 1) {
      topics.push(parse(`topic=number/${number}/of/several&pad=${"p".repeat(1_000_000)}`).get("topic"));
    }
    expect(usedBytes() - before).toBeLessThan(2_000_000); // not 20 MB
    expect(topics).toHaveLength(20);
  });
});
