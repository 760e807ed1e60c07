import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { LogInVisitor, ownScript, send } from "../harness/log-in-visitor.ts";
import { LogInWorld } from "./support/log-in-world.ts";

const sessionCookie = "__Host-stele_session!one";
const flowCookie = "__Host-stele_flow!one";
const anotherHost = { host: "events.example.org" };
/** The broker waits 5 s for a provider; a broken broker waits forever. */
const hangingMsMax = 15_000;

let world: LogInWorld;
beforeAll(async () => {
  world = await LogInWorld.start({ basePath: "/one" });
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => {
  Object.assign(world.provider, {
    audience: "stele",
    tokenSeconds: 600,
    claims: {},
    silent: undefined,
    account: "clerk",
  });
});

const brokerHost = "127.0.0.1";
const callbackUrl = (): string => `${world.consoleUrl}/callback/acme`;

/** Logs in at the provider, and returns the callback address with the code. `change` may edit the authorization request. */
async function reachCallback(visitor: LogInVisitor, change: (authorization: URL) => void = () => {}): Promise<URL> {
  const authorization = new URL(await visitor.follow(`${world.consoleUrl}/login/acme`, world.provider.issuer));
  change(authorization);
  return new URL(await visitor.follow(authorization.href, callbackUrl()));
}

/** Logs in, and returns the value of the session cookie. */
async function logIn(visitor = new LogInVisitor()): Promise<string> {
  const callback = await reachCallback(visitor);
  expect((await visitor.ask(callback.href)).status).toBe(303);
  return visitor.jars.get(brokerHost)?.get(sessionCookie) ?? "";
}

const rightsWith = (cookie: string, headers: Readonly<Record<string, string>> = ownScript) =>
  send(`${world.broker.url}/access`, { headers: { cookie, ...headers } });

describe("a log-in", () => {
  it("a log-in requests a code with PKCE, state and nonce, and sets a session cookie that is SameSite=Strict and HttpOnly", async () => {
    const visitor = new LogInVisitor();
    const begun = await visitor.ask(`${world.consoleUrl}/login/acme?view=${encodeURIComponent("/tail?topic=a%2F%23")}`);
    const asked = new URL(begun.headers.location ?? "").searchParams;
    expect(begun.status).toBe(303);
    expect(begun.headers["set-cookie"]).toEqual([
      expect.stringMatching(/^__Host-stele_flow!one=[\w-]+; Max-Age=600; Path=\/; Secure; HttpOnly; SameSite=Lax$/),
    ]);
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: "code",
      client_id: "stele-console",
      redirect_uri: callbackUrl(),
      scope: "openid",
      resource: "https://stele.example",
      code_challenge_method: "S256",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    const callback = await visitor.follow(begun.headers.location ?? "", callbackUrl());
    const finished = await visitor.ask(callback);
    expect(finished).toMatchObject({ status: 303, headers: { location: "/one/console/tail?topic=a%2F%23" } });
    const [cleared, session] = finished.headers["set-cookie"] ?? [];
    expect(cleared).toMatch(/^__Host-stele_flow!one=; Max-Age=0; /);
    expect(session).toMatch(
      /^__Host-stele_session!one=[\w.-]+; Max-Age=(59\d|600); Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    );
    const cookie = `other=1; ${session?.split(";")[0] ?? ""}`;
    const rights = await rightsWith(cookie);
    expect(JSON.parse(rights.body)).toMatchObject({ principal: "acme/clerk", expiresAt: expect.any(String) });
    const exist = await send(`${world.broker.url}/rest/exist?topic=a`, { headers: { cookie, ...ownScript } });
    expect(exist).toMatchObject({ body: "false", headers: { "cache-control": "no-store" } });
  });

  it("operators log in at their own port, with the rights of their token", async () => {
    world.staff.account = "operator";
    const visitor = new LogInVisitor();
    const callback = `${world.operatorsUrl}/console/callback/staff`;
    const reached = await visitor.follow(`${world.operatorsUrl}/console/login/staff`, callback);
    expect((await visitor.ask(reached)).status).toBe(303);
    const list = (headers: Readonly<Record<string, string>>) =>
      visitor.ask(`${world.operatorsUrl}/admin/v1/subscriptions`, { headers });
    expect(await list(ownScript)).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } });
    expect((await list({})).status).toBe(401);
    const clerk = { cookie: `${sessionCookie}=${await logIn()}`, ...ownScript };
    expect((await list(clerk)).status).toBe(403);
    expect((await visitor.ask(`${world.operatorsUrl}/console/login/acme`)).status).toBe(404);
  });

  it("a session ends when its token expires, and on log-out", async () => {
    const visitor = new LogInVisitor();
    world.provider.tokenSeconds = 6;
    const cookie = `${sessionCookie}=${await logIn(visitor)}`;
    expect(await rightsWith(cookie)).toMatchObject({ status: 200 });
    await expect.poll(async () => (await rightsWith(cookie)).status, { timeout: 30_000 }).toBe(401);
    await logIn(visitor);
    const out = await visitor.ask(`${world.consoleUrl}/logout`);
    expect(out).toMatchObject({ status: 303, headers: { location: "/one/console/" } });
    expect(visitor.jars.get(brokerHost)?.has(sessionCookie)).toBe(false);
  });

  it("a log-in leaves no part of a token, code or client secret in the log", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    await visitor.ask(callback.href);
    const token = visitor.jars.get(brokerHost)?.get(sessionCookie) ?? "";
    await rightsWith(`${sessionCookie}=${token}x`);
    const log = world.broker.stdout() + world.broker.stderr();
    for (const secret of [callback.searchParams.get("code"), ...token.split("."), "a secret of the client"]) {
      expect(secret).toBeTruthy();
      expect(log).not.toContain(secret);
    }
  });

  it.each([
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "/../../rest/publish?topic=a&content=x",
    "/%2e%2e/%2e%2e//evil.example",
    "/tail\r\nset-cookie: a=b",
    "tail",
    "",
  ])("a log-in leads into the console, whatever the requested view: %j", async (view) => {
    const visitor = new LogInVisitor();
    const begin = `${world.consoleUrl}/login/acme?view=${encodeURIComponent(view)}`;
    const callback = await visitor.follow(begin, callbackUrl());
    const { status, headers } = await visitor.ask(callback);
    const target = new URL(headers.location ?? "", world.consoleUrl);
    expect(status).toBe(303);
    expect(target.origin).toBe(new URL(world.consoleUrl).origin);
    expect(target.pathname).toMatch(/^\/one\/console\//);
    expect(headers["set-cookie"]).toHaveLength(2);
  });
});

/** Sends the visitor to the callback address. Expects an error page with this reason, and no session. */
async function expectRefused(visitor: LogInVisitor, callback: string, page: { reason: RegExp; status?: number }) {
  const answer = await visitor.ask(callback);
  expect(answer).toMatchObject({
    status: page.status ?? 400,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringContaining("default-src 'none'"),
    },
    body: expect.stringMatching(page.reason),
  });
  expect(visitor.jars.get(brokerHost)?.has(sessionCookie)).toBe(false);
}

describe("a log-in is refused", () => {
  it("a log-in is refused if the callback has another state", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    callback.searchParams.set("state", "x".repeat(43));
    await expectRefused(visitor, callback.href, { reason: /the answer belongs to another log-in/ });
  });

  it("a log-in is refused if the callback answers another log-in, and the waiting log-in can still finish", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    for (const query of ["", "?error=access_denied", `?code=c&state=${"x".repeat(43)}`]) {
      await expectRefused(visitor, `${callbackUrl()}${query}`, { reason: /the answer belongs to another log-in/ });
    }
    expect((await visitor.ask(callback.href)).status).toBe(303);
  });

  it("a log-in is refused if the callback answers the log-in of another browser", async () => {
    const callback = await reachCallback(new LogInVisitor());
    await expectRefused(new LogInVisitor(), callback.href, { reason: /No log-in of this browser waits/ });
    const other = new LogInVisitor();
    await reachCallback(other);
    await expectRefused(other, callback.href, { reason: /the answer belongs to another log-in/ });
  });

  it("a log-in is refused if its code was used before, even if the browser sends the flow cookie again", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    const flow = visitor.jars.get(brokerHost)?.get(flowCookie) ?? "";
    expect((await visitor.ask(callback.href)).status).toBe(303);
    visitor.jars.get(brokerHost)?.delete(sessionCookie);
    await expectRefused(visitor, callback.href, { reason: /No log-in of this browser waits/ });
    visitor.jars.get(brokerHost)?.set(flowCookie, flow);
    await expectRefused(visitor, callback.href, { reason: /its code was used before/ });
    expect(world.broker.stdout()).toMatch(
      /"its code was used before.*"log-in refused"|"log-in refused".*"its code was used before/,
    );
  });

  it("a log-in is refused if its code was requested with another verifier", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor, ({ searchParams }) =>
      searchParams.set("code_challenge", "x".repeat(43)),
    );
    await expectRefused(visitor, callback.href, {
      reason: /its code was used before, is too old, or belongs to another log-in/,
    });
  });

  it("a log-in is refused if the ID token has another nonce", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor, ({ searchParams }) => searchParams.set("nonce", "another"));
    await expectRefused(visitor, callback.href, {
      reason: /the ID token belongs to another log-in: its nonce differs/,
    });
  });

  it("a log-in is refused if another issuer answers", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    expect(callback.searchParams.get("iss")).toBe(world.provider.issuer);
    callback.searchParams.set("iss", "https://globex.invalid");
    await expectRefused(visitor, callback.href, {
      reason: /the answer belongs to another log-in, or comes from another provider/,
    });
  });

  it("a log-in is refused at the callback address of another provider", async () => {
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    await expectRefused(visitor, callback.href.replace("/acme", "/globex"), {
      reason: /No log-in of this browser waits/,
    });
  });

  it("a log-in is refused if the token is for another audience, and the log says why", async () => {
    world.provider.audience = "somebody else";
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    await expectRefused(visitor, callback.href, {
      reason: /does not take its access token: the token is for another audience/,
      status: 403,
    });
    expect(world.broker.stdout()).toContain("the token is for another audience");
  });

  it("a log-in is refused if the token is too long for a cookie", async () => {
    world.provider.claims = { groups: "x".repeat(4096) };
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    await expectRefused(visitor, callback.href, { reason: /too long for a cookie: \d{4} bytes of 4096/, status: 502 });
  });

  it("a log-in is refused if the provider answers with an error, whose text is not shown", async () => {
    const visitor = new LogInVisitor();
    await visitor.ask(`${world.consoleUrl}/login/acme`);
    const flow = visitor.jars.get(brokerHost)?.get(flowCookie) ?? "";
    const [, state = ""] = JSON.parse(Buffer.from(flow, "base64url").toString()) as string[]; // A flow is a JSON array.
    const query = new URLSearchParams({ state, error: "<b>", error_description: "<i>", iss: world.provider.issuer });
    await expectRefused(visitor, `${callbackUrl()}?${query.toString()}`, {
      reason: /the provider answered with an error\. Log in/,
    });
  });

  it.each(["/login/none", "/callback/none?code=a&state=b"])(
    "a log-in is refused at %s, which belongs to no log-in",
    async (path) => {
      await expectRefused(new LogInVisitor(), world.consoleUrl + path, {
        reason: /There is no such log-in/,
        status: 404,
      });
    },
  );

  it.each(["", "x", "W10", Buffer.from('["acme",1,2,3,4]').toString("base64url"), "%%%", "e30"])(
    "a log-in is refused if the flow cookie is %j",
    async (flow) => {
      const visitor = new LogInVisitor();
      const callback = await reachCallback(visitor);
      visitor.jars.get(brokerHost)?.set(flowCookie, flow);
      await expectRefused(visitor, callback.href, { reason: /No log-in of this browser waits/ });
    },
  );

  it("a log-in is refused at a host that is none of its `origins`, and the console does not offer it there", async () => {
    const answer = await send(`${world.consoleUrl}/login/acme`, { headers: anotherHost });
    expect(answer.status).toBe(404);
    expect(answer.headers["set-cookie"]).toBeUndefined();
    const names = async (headers = {}) =>
      /name="log-ins" content="([^"]*)"/.exec((await send(`${world.consoleUrl}/`, { headers })).body)?.[1];
    expect([await names(), await names(anotherHost), await names({ host: "localhost" })]).toEqual([
      "acme globex",
      "globex",
      "",
    ]);
  });

  it("a log-in is refused while its provider is down or does not answer, and succeeds again afterwards", async () => {
    const { provider, consoleUrl } = world;
    const visitor = new LogInVisitor();
    const callback = await reachCallback(visitor);
    await provider.close();
    await expectRefused(visitor, callback.href, { reason: /cannot be used at present/, status: 503 });
    await expectRefused(visitor, `${consoleUrl}/login/acme`, { reason: /cannot be used at present/, status: 503 });
    expect(world.broker.stdout()).toContain("log-in provider failed");
    await provider.listen();
    const next = await reachCallback(visitor);
    provider.silent = "/token";
    const started = performance.now();
    await expectRefused(visitor, next.href, { reason: /cannot be used at present/, status: 503 });
    expect(performance.now() - started).toBeLessThan(hangingMsMax);
    provider.silent = undefined;
    await logIn(visitor);
  });
});

describe("a session cookie gives no rights", () => {
  const publish = "/rest/publish?topic=stolen&content=x";
  let cookie: string;
  beforeAll(async () => {
    world.provider.account = "clerk";
    cookie = `${sessionCookie}=${await logIn()}`;
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ["a client that is not a browser", {}],
    [
      "a link within the console",
      { "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    ],
    [
      "an image of the console",
      { "sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
    ],
    ["a typed address", { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }],
    ["an older browser", { origin: "" }],
  ])("a session cookie gives no rights in a request from %s", async (_name, headers) => {
    const own = "origin" in headers ? { origin: new URL(world.broker.url).origin } : headers;
    const answer = await send(world.broker.url + publish, { method: "POST", headers: { cookie, ...own } });
    expect(JSON.parse(answer.body)).toMatchObject({ code: 100701 });
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ["another site", { ...ownScript, "sec-fetch-site": "cross-site", origin: "https://evil.example" }],
    ["another port of this host", { ...ownScript, "sec-fetch-site": "same-site", origin: "http://127.0.0.1:1" }],
    ["an older browser at another site", { origin: "https://evil.example" }],
  ])("a session cookie gives no rights in a request from %s, which gets 403", async (_name, headers) => {
    for (const method of ["POST", "GET"]) {
      const answer = await send(world.broker.url + publish, { method, headers: { cookie, ...headers } });
      expect(answer.status).toBe(403);
    }
    const tail = await send(`${world.broker.url}/tail?topic=a`, { headers: { cookie, ...headers } });
    expect(tail.status).toBe(403);
  });

  it("a session cookie gives no rights after any part of its token is changed", async () => {
    const [head = "", claims = "", signature = ""] = cookie.slice(sessionCookie.length + 1).split(".");
    const admin = Buffer.from(claims, "base64url").toString().replace('"clerk"]', '"admin"]');
    for (const parts of [
      [head, Buffer.from(admin).toString("base64url"), signature],
      [head, claims, `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`],
      [Buffer.from('{"alg":"none"}').toString("base64url"), claims, ""],
    ]) {
      const answer = await rightsWith(`${sessionCookie}=${parts.join(".")}`);
      expect([answer.status, JSON.parse(answer.body)]).toEqual([401, expect.objectContaining({ code: 100701 })]);
    }
  });

  it("a session cookie gives no rights under another name, or together with a wrong key", async () => {
    expect((await rightsWith(cookie.replace("!one", ""))).status).toBe(401);
    expect((await rightsWith(cookie, { ...ownScript, authorization: "Bearer wrong" })).status).toBe(401);
    expect((await rightsWith(cookie)).status).toBe(200);
  });

  it("a session cookie lets no other site log its user out or in by a link", async () => {
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    for (const path of ["/logout", "/login/acme"]) {
      const answer = await send(world.consoleUrl + path, { headers: { cookie, ...link } });
      expect([answer.status, answer.headers["set-cookie"]]).toEqual([403, undefined]);
    }
  });
});
