import { createHmac, generateKeyPairSync, verify } from "node:crypto";
import { expect, test } from "vitest";
import { signMessage } from "./webhook-signature.ts";

const message = {
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  timestampSeconds: 1_614_265_330,
  body: Buffer.from('{"test": 2432232314}'),
};

test("signs with a whsec_ secret like the published vector of Standard Webhooks", () => {
  const signature = signMessage("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", message);
  expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

test.each(["plain secret", "Größe", "whsec_", "whsec_not base64!", "whsec_abcde", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])(
  "signs with the UTF-8 bytes of the secret %s",
  (secret) => {
    const signed = `${message.id}.${message.timestampSeconds}.${message.body.toString()}`;
    const digest = createHmac("sha256", Buffer.from(secret, "utf8")).update(signed).digest("base64");
    expect(signMessage(secret, message)).toBe(`v1,${digest}`);
  },
);

test("signs by Ed25519 with a whsk_ key, and the public key verifies the signature", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32);
  const signature = signMessage(`whsk_${seed.toString("base64")}`, message);
  const [version, encoded = ""] = signature.split(",");
  const signed = Buffer.from(`${message.id}.${message.timestampSeconds}.${message.body.toString()}`);
  expect([version, verify(null, signed, publicKey, Buffer.from(encoded, "base64"))]).toEqual(["v1a", true]);
});
