import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { BrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import { type Principal, toOwnerId } from "../../../engine/access/caller.ts";
import type { Broker } from "../../../engine/broker.ts";
import { RuleSet } from "../../../engine/access/rule-set.ts";
import { serve } from "../../testing/serve.ts";
import { cookieNameOf } from "../../callers/session-cookie.ts";
import { encodeFlow } from "./flow.ts";
import type { LogIn } from "./log-in.ts";

const secrets = { state: "s".repeat(43), nonce: "n".repeat(43), verifier: "v".repeat(43) };
const cookie = `${cookieNameOf("", "flow")}=${encodeFlow({ name: "acme", secrets, view: "/" })}`;
const logIn: LogIn = {
  name: "acme",
  issuer: "https://id.acme.example",
  origins: ["https://events.example.org"],
  provider: {
    findWarning: () => undefined,
    begin: (redirectUri) => Promise.resolve({ status: "begun", url: redirectUri, secrets }),
    finish: () => Promise.resolve({ status: "finished", token: "a.b.c" }),
  },
};
const refusing: LogIn = {
  ...logIn,
  provider: { ...logIn.provider, finish: () => Promise.resolve({ status: "refused", reason: "its code was used" }) },
};
const index = { type: "text/html", bytes: Buffer.from("<title>Stele</title>"), gzip: undefined, etag: "x" };
const known: Principal = {
  kind: "known",
  id: toOwnerId("clerk", undefined),
  tenant: undefined,
  rules: new RuleSet([]),
  expiresAt: Date.now() + 600_000,
  keyId: undefined,
};

/** Sends a request as a proxy does that ends TLS and passes `Host` on. */
async function ask(path: string, principal: Principal = known, refuseLogIn?: Broker["refuseLogIn"]) {
  await using server = await serve(
    { authenticate: () => principal, ...(refuseLogIn && { refuseLogIn }) },
    {
      console: new Map([["index.html", index]]),
      logIns: [refuseLogIn === undefined ? logIn : refusing],
      allowedHosts: ["events.example.org"],
    },
  );
  const headers = { host: "Events.example.org", cookie, connection: "close" };
  const sent = request(`${server.url}/console${path}`, { headers }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage]; // What Node emits.
  const { location, "set-cookie": cookies } = response.headers;
  return { status: response.statusCode, location, cookies: String(cookies), body: await text(response) };
}

const callback = `/callback/acme?code=c&state=${secrets.state}`;

test("a log-in returns to the host that the browser named, even behind a proxy", async () => {
  const { status, location } = await ask("/login/acme");
  expect([status, location]).toEqual([303, "https://events.example.org/console/callback/acme"]);
});

test.each<[string, Principal, number, string]>([
  ["the provider's own", { ...known, token: { issuer: logIn.issuer, signer: "k" } }, 303, ""],
  ["another issuer's", { ...known, token: { issuer: "https://id.globex.example", signer: "k" } }, 403, "access token."],
  ["a key", { ...known, keyId: "k" }, 403, "does not take its access token."],
  ["rejected", { kind: "rejected", reason: "it is <b>" }, 403, "access token: it is &lt;b&gt;."],
  ["not verifiable at present", { kind: "rejected", reason: "x", error: new BrokerError("busy") }, 503, "at present"],
])("begins a session only with a token of the provider: %s", async (...[, principal, status, words]) => {
  const answer = await ask(callback, principal);
  expect(answer).toMatchObject({ status, body: expect.stringContaining(words) });
  expect(answer.cookies).toMatch(/^__Host-stele_flow=; Max-Age=0;/);
  expect(answer.cookies.includes("__Host-stele_session=a.b.c")).toBe(status === 303);
});

test("reports the client's address to the broker if the provider refuses a log-in, but not if the state is wrong", async () => {
  const noted: unknown[] = [];
  const refuseLogIn: Broker["refuseLogIn"] = (reason, { address }) => {
    noted.push([reason, address]);
    return Promise.resolve({ kind: "rejected", reason });
  };
  expect(await ask(callback, known, refuseLogIn)).toMatchObject({ status: 400 });
  await ask(`/callback/acme?code=c&state=x`, known, refuseLogIn);
  expect(noted).toEqual([["its code was used", "127.0.0.1"]]);
});

const inFlood: Broker["refuseLogIn"] = (reason) => ({ kind: "rejected", reason, isClosed: true });

test("resets the connection without an answer in a flood of failed log-ins", async () => {
  await expect(ask(callback, known, inFlood)).rejects.toMatchObject({ code: "ECONNRESET" });
});

test("a session ends with its token, and no later than browsers keep a cookie", async () => {
  const token = { issuer: logIn.issuer, signer: "k" };
  for (const [expiresAt, seconds] of [
    [Date.now() + 600_500, /Max-Age=(600|59\d);/],
    [Number.POSITIVE_INFINITY, /Max-Age=34560000;/],
  ] as const) {
    const { cookies } = await ask(callback, { ...known, token, expiresAt });
    expect(cookies.split("__Host-stele_session")[1]).toMatch(seconds);
  }
});
