import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { SecretBox } from "./secret-box.ts";
import { keysOf } from "./testing/keys.ts";

const secret = fc.string({ unit: "grapheme", maxLength: 100 });
const id = fc.uuid().map(parseSubscriptionId);
const box = new SecretBox(keysOf("new", "old"));
const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:.";

test("a sealed secret opens for its own subscription, even if an older key sealed it", () => {
  fc.assert(
    fc.property(id, secret, (id, secret) => {
      const older = new SecretBox(keysOf("old")).seal(id, secret);
      expect(box.open(id, older)).toEqual({ status: "open", secret });
      expect(box.isOfOlderKey(older)).toBe(true);
      const newest = box.seal(id, secret);
      expect(box.open(id, newest)).toEqual({ status: "open", secret });
      expect(box.isOfOlderKey(newest)).toBe(false);
    }),
  );
});

test("sealing twice gives different texts, and neither contains the secret", () => {
  fc.assert(
    fc.property(id, fc.string({ minLength: 8, maxLength: 64 }), (id, secret) => {
      const seals = [box.seal(id, secret), box.seal(id, secret)];
      expect(new Set(seals).size).toBe(2);
      expect(seals.join()).not.toContain(secret);
    }),
  );
});

test("a sealed secret opens for no other subscription and with no other key", () => {
  fc.assert(
    fc.property(id, id, secret, (id, other, secret) => {
      fc.pre(id !== other);
      expect(box.open(other, box.seal(id, secret))).toMatchObject({ status: "shut" });
      expect(new SecretBox(keysOf("another")).open(id, box.seal(id, secret))).toMatchObject({ status: "shut" });
    }),
  );
});

test("a sealed text that is changed, cut or extended does not open, unless it decodes to the same bytes", () => {
  fc.assert(
    fc.property(id, secret, fc.tuple(fc.nat(), fc.nat()), (id, secret, [at, to]) => {
      const sealed = box.seal(id, secret);
      const index = at % sealed.length;
      const character = characters[to % characters.length] ?? "";
      for (const changed of [
        sealed.slice(0, index) + character + sealed.slice(index + 1),
        sealed.slice(0, index),
        sealed.slice(0, index) + character + sealed.slice(index),
      ]) {
        if (bytesOf(changed) === bytesOf(sealed)) continue;
        expect(box.open(id, changed), changed).toMatchObject({ status: "shut" });
      }
    }),
  );
});

test.each(["", "plain", "whsec_abcd", "v1::", "v1:0123456789abcdef:", `v1:${keysOf("new").newest().id}:AAAA`])(
  "the text %j, which is not sealed, does not open",
  (text) => {
    const result = box.open(parseSubscriptionId("11111111-1111-4111-8111-111111111111"), text);
    expect(result).toEqual({ status: "shut", reason: expect.any(String) });
  },
);

/** The decoded text: two texts can mean the same bytes, since the last character of Base64url may have unused bits. */
function bytesOf(sealed: string): string {
  const [version, keyId, text = ""] = sealed.split(":");
  return `${version}:${keyId}:${Buffer.from(text, "base64url").toString("hex")}`;
}
