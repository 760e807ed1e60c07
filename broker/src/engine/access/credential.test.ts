import { describe, expect, it } from "vitest";
import { equalsInConstantTime, formatKeyCredential, parseKeyCredential } from "./credential.ts";

const [id, secret] = ["0123456789abcdef", `${"s".repeat(41)}-_`];

describe("a key", () => {
  it("is parsed into the parts from which it was formatted", () => {
    expect(parseKeyCredential(formatKeyCredential({ id, secret }))).toEqual({ id, secret });
  });

  it.each([
    ["", "no characters"],
    [`stele_${id}_`, "no secret"],
    [`stele_${id}_${secret.slice(1)}`, "a shorter secret"],
    [`stele_${id}_${secret}x`, "a longer secret"],
    [`stele_${id}_${secret.slice(1)}=`, "a character that is not in Base64 for URLs"],
    [`stele_${id.slice(1)}_${secret}`, "a shorter identifier"],
    [`stele_${id.toUpperCase()}_${secret}`, "an identifier in capitals"],
    [` stele_${id}_${secret}`, "a leading space"],
    [`stele_${id}_${secret}\n`, "a trailing line break"],
    [`other_${id}_${secret}`, "another prefix"],
  ])("rejects %j, which has %s", (text) => {
    expect(parseKeyCredential(text)).toBeUndefined();
  });
});

describe("equalsInConstantTime", () => {
  const digest = "0123456789abcdef".repeat(4);
  const differing = (index: number): string => `${digest.slice(0, index)}x${digest.slice(index + 1)}`;

  it("returns false if any character or the length differs", () => {
    expect(equalsInConstantTime(digest, digest)).toBe(true);
    for (let index = 0; index < digest.length; index += 1) {
      expect(equalsInConstantTime(digest, differing(index)), String(index)).toBe(false);
    }
    expect(equalsInConstantTime(digest, digest.slice(1))).toBe(false);
    expect(equalsInConstantTime(digest, `${digest}0`)).toBe(false);
    expect(equalsInConstantTime("", digest)).toBe(false);
  });

  it("reads every character of both texts, wherever the first difference is", () => {
    const reads = [digest, differing(0), differing(31), differing(63)].map((text) => {
      const [left, right] = [new CountedText(digest), new CountedText(text)];
      equalsInConstantTime(left as never, right as never);
      return [left.reads, right.reads];
    });
    expect(reads).toEqual(Array.from({ length: 4 }, () => [digest.length, digest.length]));
  });
});

/** A text that counts reads of its characters. */
class CountedText {
  readonly #text: string;
  readonly length: number;
  reads = 0;

  constructor(text: string) {
    this.#text = text;
    this.length = text.length;
  }

  charCodeAt(index: number): number {
    this.reads += 1;
    return this.#text.charCodeAt(index);
  }
}
