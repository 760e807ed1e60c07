import { createHmac, createPublicKey, generateKeyPairSync } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDeferred } from "../lib/deferred.ts";
import { silentLogger } from "../lib/logger.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { keysTrustedMsMax } from "./issuer.ts";
import { JwtVerifier } from "./jwt-verifier.ts";
import { TestIssuer, toKeySet } from "./testing/token-issuer.ts";

const place = "https://issuer.example/keys";
const encryption = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" });
let clock: VirtualClock;
let issuer: TestIssuer;
let documents: Record<string, string | undefined>;
let reads: number;
let changes: number;
/** Reads of keys wait for this. */
let answering: Promise<void>;
let verifier: JwtVerifier;
beforeEach(async () => {
  clock = new VirtualClock();
  issuer = await TestIssuer.create("https://issuer.example");
  documents = { [place]: toKeySet(issuer) };
  [reads, changes, answering] = [0, 0, Promise.resolve()];
  const read = async (asked: string): Promise<string> => {
    reads += 1;
    await answering;
    const text = documents[asked];
    if (text === undefined) throw new Error("gone");
    return text;
  };
  const options = { issuer: issuer.name, audience: ["stele"], algorithms: ["ES256", "RS256"], keys: place };
  verifier = new JwtVerifier([options], { clock, logger: silentLogger, read });
  await verifier.start(() => void (changes += 1));
});
afterEach(() => verifier.stop());

const seconds = (): number => Math.floor(clock.now() / 1000);
const valid = () => ({ exp: seconds() + 60 });
const judge = async (token: string | Promise<string>) => verifier.verify(await token, clock.now());
const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

it("verifies a token, and reports its issuer, expiry, claims and a trusted signer", async () => {
  const verdict = await judge(issuer.sign({ ...valid(), sub: "one" }));
  expect(verdict).toMatchObject({ status: "verified", issuer: issuer.name, expiresAt: (seconds() + 60) * 1000 });
  expect(verdict.status === "verified" && [verdict.claims["sub"], verifier.trusts(verdict)]).toEqual(["one", true]);
});

it("verifies a token of an issuer whose clock is a minute ahead", async () => {
  expect(await judge(issuer.sign({ ...valid(), nbf: seconds() + 60 }))).toMatchObject({ status: "verified" });
});

it.each<[what: string, broken: object]>([
  ["with malformed coordinates", { kty: "EC", crv: "P-256", x: "AAAA", y: "AAAA" }],
  ["without coordinates", { kty: "EC", crv: "P-256" }],
  ["of another algorithm", { kty: "RSA", e: "AQAB", n: Buffer.alloc(256, 1).toString("base64url") }],
])("verifies a token even if the issuer's key set begins with a key %s", async (_, broken) => {
  documents[place] = JSON.stringify({ keys: [broken, issuer.jwk] });
  await clock.advance(60_000);
  expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
});

it("verifies a token by the key that it names, even after eight keys without an identifier", async () => {
  const others = await Promise.all(Array.from({ length: 8 }, () => TestIssuer.create(issuer.name)));
  const unnamed = others.map(({ jwk }) => ({ ...jwk, kid: undefined }));
  documents[place] = JSON.stringify({ keys: [...unnamed, issuer.jwk] });
  await clock.advance(60_000);
  expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
});

it("verifies a token without an identifier, even after eight keys of another algorithm", async () => {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const other = publicKey.export({ format: "jwk" });
  documents[place] = JSON.stringify({ keys: [...Array.from({ length: 8 }, () => other), issuer.jwk] });
  await clock.advance(60_000);
  expect(await judge(issuer.sign(valid(), { kid: undefined }))).toMatchObject({ status: "verified" });
});

describe("refuses a token", () => {
  it.each([
    ["that is expired", () => ({ exp: seconds() }), "expired"],
    ["that expired an hour ago", () => ({ exp: seconds() - 3_600 }), "expired"],
    ["that never expires", () => ({}), "does not say when it expires"],
    ["that is not valid yet", () => ({ ...valid(), nbf: seconds() + 61 }), "not valid yet"],
    ["for another audience", () => ({ ...valid(), aud: "other" }), "another audience"],
    ["of another issuer", () => ({ ...valid(), iss: "https://other.example" }), "no issuer"],
  ])("%s", async (_, toClaims, reason) => {
    expect(await judge(issuer.sign(toClaims()))).toMatchObject({
      status: "refused",
      reason: expect.stringContaining(reason),
    });
  });

  it("that another key has signed under the same identifier", async () => {
    const forger = await TestIssuer.create(issuer.name, issuer.kid);
    expect(await judge(forger.sign(valid()))).toMatchObject({
      status: "refused",
      reason: expect.stringContaining("fits"),
    });
  });

  it("that fits only the ninth of nine keys without an identifier", async () => {
    const issuers = await Promise.all(Array.from({ length: 9 }, () => TestIssuer.create(issuer.name)));
    const keys = issuers.map(({ jwk }) => ({ ...jwk, kid: undefined }));
    documents[place] = JSON.stringify({ keys });
    await clock.advance(60_000);
    const verdicts = await Promise.all(issuers.map(async (one) => judge(one.sign(valid()))));
    expect(verdicts.map(({ status }) => status)).toEqual([...Array.from({ length: 8 }, () => "verified"), "refused"]);
    expect(verdicts.at(-1)).toMatchObject({ reason: expect.stringContaining("first 8 keys") });
    const forged = await judge((await TestIssuer.create(issuer.name)).sign(valid()));
    expect(forged).toMatchObject({
      reason: expect.stringContaining("give the keys of the issuer's set, and its tokens, a kid"),
    });
  });

  it("that fits none of eight keys without an identifier, and asks for no identifiers", async () => {
    const issuers = await Promise.all(Array.from({ length: 8 }, () => TestIssuer.create(issuer.name)));
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const keys = issuers.map(({ jwk }) => ({ ...jwk, kid: undefined }));
    documents[place] = JSON.stringify({ keys: [...keys, publicKey.export({ format: "jwk" })] });
    await clock.advance(60_000);
    const forged = await judge((await TestIssuer.create(issuer.name)).sign(valid()));
    expect(forged).toEqual({ status: "refused", reason: "no key of the token's issuer fits the token's signature" });
  });

  it("without a signature (alg none)", async () => {
    const claims = part({ iss: issuer.name, aud: "stele", sub: "x", ...valid() });
    for (const alg of ["none", "None", "NONE"]) {
      expect(await judge(`${part({ alg })}.${claims}.`)).toMatchObject({ status: "refused" });
      expect(await judge(`${part({ alg })}.${claims}.AA`)).toMatchObject({ status: "refused" });
    }
  });

  it("signed with the public key as a shared secret (HMAC confusion)", async () => {
    const pem = createPublicKey({ key: issuer.jwk as never, format: "jwk" }).export({ type: "spki", format: "pem" });
    const head = `${part({ alg: "HS256", kid: issuer.kid })}.${part({ iss: issuer.name, aud: "stele", ...valid() })}`;
    for (const secret of [pem, JSON.stringify(issuer.jwk), ""]) {
      const signature = createHmac("sha256", secret).update(head).digest("base64url");
      expect(await judge(`${head}.${signature}`)).toMatchObject({ status: "refused" });
    }
  });

  it("with an algorithm that the settings do not allow, even if the key's type fits", async () => {
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    documents[place] = JSON.stringify({ keys: [publicKey.export({ format: "jwk" })] });
    await clock.advance(60_000);
    const head = `${part({ alg: "PS256" })}.${part({ iss: issuer.name, aud: "stele", ...valid() })}`;
    expect(await judge(`${head}.AAAA`)).toMatchObject({
      status: "refused",
      reason: "the token's algorithm is not allowed",
    });
  });

  it("whose header contains a key, the URL of keys, or an unknown critical extension", async () => {
    const forger = await TestIssuer.create(issuer.name, "own");
    expect(await judge(forger.sign(valid(), { jwk: forger.jwk }))).toMatchObject({ status: "refused" });
    expect(await judge(forger.sign(valid(), { jku: "https://forger.example" }))).toMatchObject({ status: "refused" });
    const [, claims = ""] = (await issuer.sign(valid())).split(".");
    const head = part({ alg: "ES256", kid: issuer.kid, crit: ["x"], x: 1 });
    expect(await judge(`${head}.${claims}.AAAA`)).toMatchObject({ status: "refused" });
  });

  it.each(["a.b.c", "..", `${part({ alg: "ES256" })}.${part(null)}.AA`, `${part([])}.${part({ iss: 1 })}.AA`])(
    "that is malformed: %s",
    async (text) => expect(await judge(text)).toMatchObject({ status: "refused" }),
  );
});

describe("keys", () => {
  it("with a new identifier are read at once, but not more often than every five seconds", async () => {
    const next = await TestIssuer.create(issuer.name, "two");
    await clock.advance(5_000);
    documents[place] = toKeySet(issuer, next);
    expect(await judge(next.sign(valid()))).toMatchObject({ status: "verified" });
    expect(reads).toBe(2);
    const unknown = await TestIssuer.create(issuer.name, "three");
    for (let count = 0; count < 5; count += 1) await judge(unknown.sign(valid()));
    expect(reads).toBe(2);
    await clock.advance(5_000);
    await Promise.all([1, 2, 3].map(async () => judge(unknown.sign(valid()))));
    expect(reads).toBe(3);
  });

  it("that a hanging issuer has not returned yet: 200 tokens wait for them, further ones stay undecided, and tokens of known keys are verified", async () => {
    await clock.advance(5_000);
    const { promise, resolve } = createDeferred<void>();
    answering = promise;
    const unknown = await TestIssuer.create(issuer.name, "two");
    const token = await unknown.sign(valid());
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warn); // Node warns of more than ten listeners of one signal.
    const waiting = Array.from({ length: 200 }, () => judge(token));
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
    expect(await judge(token)).toEqual({
      status: "undecided",
      reason: expect.stringContaining("too many tokens wait"),
    });
    documents[place] = toKeySet(issuer, unknown);
    resolve();
    for (const verdict of await Promise.all(waiting)) expect(verdict).toMatchObject({ status: "verified" });
    process.off("warning", warn);
    expect(warnings).toEqual([]);
    expect(await judge(token)).toMatchObject({ status: "verified" });
  });

  it("that cannot be read leave a token with a new identifier undecided, and change no other verdict", async () => {
    const next = await TestIssuer.create(issuer.name, "two");
    const token = await next.sign(valid());
    documents[place] = undefined;
    await clock.advance(5_000);
    const unreadable = { status: "undecided", reason: "the keys of the token's issuer cannot be read at the moment" };
    for (let tries = 0; tries < 2; tries += 1) expect(await judge(token)).toEqual(unreadable);
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
    expect(await judge(next.sign(valid(), { kid: issuer.kid }))).toMatchObject({ status: "refused" });
    documents[place] = toKeySet(issuer, next);
    await clock.advance(5_000);
    expect(await judge(token)).toMatchObject({ status: "verified" });
  });

  it.each([
    ["the issuer's key", "two"],
    ["the token", undefined],
  ])("that cannot be read leave a token of a new key undecided if %s has no identifier", async (_, kid) => {
    documents[place] = JSON.stringify({ keys: [{ ...issuer.jwk, kid: kid === undefined ? issuer.kid : undefined }] });
    await clock.advance(60_000);
    const next = await TestIssuer.create(issuer.name, "two");
    documents[place] = undefined;
    await clock.advance(60_000);
    expect(await judge(next.sign(valid(), { kid }))).toMatchObject({ status: "undecided" });
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
  });

  it("are no longer trusted a minute after the issuer removed them, and the verifier calls onChanged", async () => {
    const verdict = await judge(issuer.sign(valid()));
    documents[place] = toKeySet(await TestIssuer.create(issuer.name, "two"));
    await clock.advance(60_000);
    expect(verdict.status === "verified" && verifier.trusts(verdict)).toBe(false);
    expect(changes).toBe(1);
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "refused" });
  });

  it.each([
    ["none", []],
    ["a key for encryption", [{ ...encryption, use: "enc" }]],
    ["a secret key", [{ kty: "oct", k: "AAAA" }]],
    ["a short key", [generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ format: "jwk" })]],
    ["a key of an unknown type", [{ kty: "AKP" }]],
  ])("are no longer trusted, with a warning, once two reads showed %s instead", async (_, left) => {
    const verdict = await judge(issuer.sign(valid()));
    const isTrusted = (): boolean => verdict.status === "verified" && verifier.trusts(verdict);
    documents[place] = JSON.stringify({ keys: left });
    await clock.advance(60_000);
    expect([isTrusted(), changes]).toEqual([true, 0]);
    expect(verifier.findWarning()).toContain("until another read shows the same");
    await clock.advance(5_000);
    expect([isTrusted(), changes]).toEqual([false, 1]);
    for (const kid of [issuer.kid, undefined])
      expect(await judge(issuer.sign(valid(), { kid }))).toEqual({
        status: "refused",
        reason: "no key of the token's issuer fits the token's signature",
      });
    expect(verifier.findWarning()).toContain(`${place} has no usable public key`);
    documents[place] = toKeySet(issuer);
    await clock.advance(5_000);
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
    expect(verifier.findWarning()).toBeUndefined();
  });

  it("stay in use if the issuer publishes no keys for a moment, however often", async () => {
    const next = await TestIssuer.create(issuer.name, "two");
    for (let times = 0; times < 3; times += 1) {
      documents[place] = '{"keys":[]}';
      await clock.advance(60_000);
      expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
      expect(await judge(next.sign(valid()))).toMatchObject({ status: "undecided" });
      documents[place] = toKeySet(issuer);
      await clock.advance(5_000);
      expect(verifier.findWarning()).toBeUndefined();
    }
    expect(changes).toBe(0);
  });

  it("stay in use until two reads at least five seconds apart return no keys, also if a token causes a read", async () => {
    await clock.advance(59_900);
    documents[place] = '{"keys":[]}';
    const next = await TestIssuer.create(issuer.name, "two");
    expect(await judge(next.sign(valid()))).toMatchObject({ status: "undecided" });
    await clock.advance(100);
    expect([reads, changes]).toEqual([3, 0]);
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
    await clock.advance(5_000);
    expect(changes).toBe(1);
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "refused" });
  });

  it("that cannot be read again are trusted for an hour, with a warning; after that, no token is verified until a read succeeds", async () => {
    const token = await issuer.sign({ exp: seconds() + 100_000 });
    documents[place] = undefined;
    await clock.advance(60_000);
    expect(verifier.findWarning()).toContain(`cannot be read at ${place}: gone`);
    expect(await judge(token)).toMatchObject({ status: "verified" });
    await clock.advance(keysTrustedMsMax);
    expect(await judge(token)).toMatchObject({ status: "undecided" });
    documents[place] = toKeySet(issuer);
    await clock.advance(5_000);
    expect(await judge(token)).toMatchObject({ status: "verified" });
    expect(verifier.findWarning()).toBeUndefined();
  });

  it("whose read hangs count as unreadable after ten seconds, and are no longer trusted after an hour", async () => {
    const { promise, resolve } = createDeferred<void>();
    answering = promise;
    await clock.advance(70_000);
    expect(verifier.findWarning()).toContain("the read has not ended after 10 s");
    const next = await TestIssuer.create(issuer.name, "two");
    const token = await next.sign({ exp: seconds() + 100_000 });
    expect(await judge(token)).toMatchObject({ status: "undecided" }); // At once.
    await clock.advance(keysTrustedMsMax);
    expect([changes, reads]).toEqual([1, 2]);
    documents[place] = toKeySet(next);
    resolve();
    await clock.advance(60_000);
    expect(await judge(token)).toMatchObject({ status: "verified" });
    expect(verifier.findWarning()).toBeUndefined();
  });

  it("of a read that ends after the stop do not count", async () => {
    const { promise, resolve } = createDeferred<void>();
    answering = promise;
    await clock.advance(70_000);
    await verifier.stop();
    documents[place] = toKeySet(await TestIssuer.create(issuer.name, "two"));
    resolve();
    await clock.settle();
    expect(changes).toBe(0);
    expect(verifier.findWarning()).toContain("the read has not ended after 10 s");
  });

  it("are reported once when they are no longer trusted, so that connections with their tokens end", async () => {
    documents[place] = undefined;
    await clock.advance(keysTrustedMsMax);
    expect(changes).toBe(0);
    await clock.advance(60_000);
    expect(changes).toBe(1);
    documents[place] = toKeySet(issuer);
    await clock.advance(60_000);
    expect(changes).toBe(1);
  });

  it.each(["<html>", "{}", '{"keys":null}', "", '{"keys":[null]}', '{"keys":[{"kty":"EC","crv":"P-256"}]}'])(
    "stay unchanged if the new document is malformed: %s",
    async (text) => {
      documents[place] = text;
      await clock.advance(120_000);
      expect(verifier.findWarning()).toContain(`cannot be read at ${place}`);
      expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
    },
  );

  it("of several issuers have a warning for each that cannot be read", async () => {
    const issuers = ["one", "two"].map((name) => ({
      issuer: name,
      audience: ["a"],
      algorithms: ["ES256"],
      keys: name,
    }));
    const gone = { clock, logger: silentLogger, read: () => Promise.reject(new Error("gone")) };
    const other = new JwtVerifier(issuers, gone);
    await other.start(() => {});
    expect(other.findWarning()).toMatch(/issuer one cannot be read at one: gone; .* issuer two cannot be read at two/);
    await other.stop();
  });

  it("are missing, with a warning, if the first document is empty", async () => {
    documents[place] = "";
    const options = { issuer: issuer.name, audience: ["stele"], algorithms: ["ES256"], keys: place };
    const read = async (asked: string): Promise<string> => documents[asked] ?? "";
    const other = new JwtVerifier([options], { clock, logger: silentLogger, read });
    await other.start(() => {});
    expect(other.findWarning()).toContain(`cannot be read at ${place}`);
    expect(await other.verify(await issuer.sign(valid()), clock.now())).toMatchObject({ status: "undecided" });
    await other.stop();
  });

  it("may be one public key in PEM", async () => {
    documents[place] = createPublicKey({ key: issuer.jwk as never, format: "jwk" })
      .export({ type: "spki", format: "pem" })
      .toString();
    await clock.advance(60_000);
    expect(await judge(issuer.sign(valid()))).toMatchObject({ status: "verified" });
  });
});
