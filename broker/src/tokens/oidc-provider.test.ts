import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "../lib/logger.ts";
import { OidcProvider } from "./oidc-provider.ts";

const secrets = { state: "s", nonce: "n", verifier: "v".repeat(43) };
const callback = new URL("http://127.0.0.1/console/callback/acme?code=c&state=s");

/** How the provider's server handles a request. */
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let server: Server;
let issuer: string;
let asked: string[];
let warnings: string[];
let provider: OidcProvider;
let secret: string;

beforeEach(async () => {
  [asked, warnings, secret] = [[], [], "first"];
  server = createServer((request, response) => {
    asked.push(request.url ?? "");
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // It listens on a port.
  provider = createProvider();
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

function createProvider(): OidcProvider {
  const logger = {
    ...silentLogger,
    child: () => logger,
    warn: (_: string, fields: unknown) => void warnings.push(JSON.stringify(fields)),
  };
  const options = { issuer, clientId: "stele", readSecret: () => secret, scopes: ["openid"], parameters: {} };
  return new OidcProvider(options, { logger });
}

const endpoints = () => ({
  issuer,
  authorization_endpoint: `${issuer}/auth`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
});

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** Answers with the endpoints, and otherwise by `atToken`. */
function serve(atToken: typeof answer): void {
  answer = (request, response) =>
    request.url === "/token" ? atToken(request, response) : sendJson(response, endpoints());
}

describe("log-ins are unavailable, and the log says why, if the provider", () => {
  it.each<[string, () => void, string]>([
    ["is down", () => server.close(), "ECONNREFUSED"],
    ["answers with HTTP status 502", () => (answer = (_, response) => sendJson(response, {}, 502)), "HTTP status 502"],
    [
      "answers with a web page",
      () => (answer = (_, response) => response.end("<html>")),
      "HTTP status 200 and no JSON",
    ],
    [
      "redirects to another URL",
      () => (answer = (_, r) => r.writeHead(302, { location: `${issuer}/a` }).end()),
      "status 302",
    ],
    ["names another issuer", () => (answer = (_, r) => sendJson(r, { ...endpoints(), issuer: "http://x" })), "OAUTH_"],
    [
      "answers without end",
      () =>
        (answer = (_, response) => {
          response.writeHead(200, { "content-type": "application/json" });
          const write = (error?: Error | null): void =>
            void (error || response.destroyed || response.write("x".repeat(65_536), write));
          write();
        }),
      "more than 262144 bytes",
    ],
  ])("%s", async (_name, arrange, reason) => {
    arrange();
    expect(await provider.begin("http://127.0.0.1/back")).toMatchObject({ status: "unavailable" });
    expect(warnings).toEqual([expect.stringContaining(reason)]);
    expect(provider.findWarning()).toContain(`log-ins by ${issuer} fail`);
  });

  it("falls silent before the head or in the middle of the body of an answer", { timeout: 20_000 }, async () => {
    const silences: (typeof answer)[] = [
      () => {},
      (_, response) => response.writeHead(200, { "content-type": "application/json" }).write("{"),
    ];
    serve((request, response) => silences.shift()?.(request, response));
    // Both log-ins wait during the same five seconds.
    const finished = await Promise.all(
      [provider, createProvider()].map((one) => one.finish(callback, secrets, "192.0.2.1")),
    );
    expect(finished).toMatchObject([{ status: "unavailable" }, { status: "unavailable" }]);
    expect(silences).toEqual([]);
    expect(warnings).toHaveLength(2);
  });

  it("refuses the client's secret, which the next log-in reads again", async () => {
    const given: string[] = [];
    serve((request, response) => {
      request.on("data", (chunk: Buffer) =>
        given.push(new URLSearchParams(chunk.toString()).get("client_secret") ?? ""),
      );
      request.on("end", () => sendJson(response, { error: "invalid_client", error_description: "secret words" }, 401));
    });
    expect(await provider.finish(callback, secrets, "192.0.2.1")).toMatchObject({ status: "unavailable" });
    secret = "second";
    await provider.finish(callback, secrets, "192.0.2.1");
    expect(given).toEqual(["first", "second"]);
    expect(warnings).toEqual([expect.stringContaining("invalid_client")]);
    expect(warnings[0]).not.toContain("secret words");
  });
});

describe("a callback that a browser may have forged", () => {
  it.each([
    "state=s&error=server_error",
    "state=s&error=invalid_scope",
    "state=s&error=a&error=b",
    "state=s&id_token=x",
    "state=s&code=c&id_token=x&token=y&response=z",
    "state=s&code=c&state=s&iss=x",
    "state=s&code=",
    "state=s",
    "",
  ])("is refused, and is not a failure of the provider: %j", async (query) => {
    serve((_, response) => sendJson(response, { error: "invalid_grant" }, 400));
    await provider.begin("http://127.0.0.1/back");
    const forged = new URL(`http://127.0.0.1/console/callback/acme?${query}`);
    expect(await provider.finish(forged, secrets, "192.0.2.1")).toMatchObject({ status: "refused" });
    await provider.begin("http://127.0.0.1/back");
    expect(asked.filter((url) => url !== "/token")).toHaveLength(1);
    expect([warnings, provider.findWarning()]).toEqual([[], undefined]);
  });

  it("is refused if the provider answers invalid_request to its code", async () => {
    serve((_, response) => sendJson(response, { error: "invalid_request" }, 400));
    expect(await provider.finish(callback, secrets, "192.0.2.1")).toEqual({
      status: "refused",
      reason: "the provider answers invalid_request when asked for a token",
    });
    expect(warnings).toEqual([]);
  });
});

it.each<[string, typeof answer, number]>([
  ["a network fault", (request) => request.socket.destroy(), 2],
  ["invalid_client", (_, response) => sendJson(response, { error: "invalid_client" }, 401), 2],
  [
    "invalid_client with a challenge",
    (_, r) => r.writeHead(401, { "www-authenticate": 'Basic realm="x"', "content-type": "application/json" }).end("{}"),
    2,
  ],
  ["HTTP status 500", (_, response) => sendJson(response, {}, 500), 1],
  ["an answer that breaks the protocol", (_, response) => sendJson(response, {}), 1],
])(
  "asks for the endpoints again only if they may be stale: after %s at the token endpoint",
  async (...[, atToken, times]) => {
    serve(atToken);
    expect(await provider.finish(callback, secrets, "192.0.2.1")).toMatchObject({ status: "unavailable" });
    await provider.begin("http://127.0.0.1/back");
    expect(asked.filter((url) => url !== "/token")).toHaveLength(times);
  },
);

it("asks for the endpoints once if many log-ins begin at once", async () => {
  answer = (_, response) => sendJson(response, endpoints());
  const begun = await Promise.all(Array.from({ length: 50 }, () => provider.begin("http://127.0.0.1/back")));
  expect(begun.every(({ status }) => status === "begun")).toBe(true);
  expect(asked).toEqual(["/.well-known/openid-configuration"]);
});

const busy = (reason: string) => ({ status: "unavailable", reason });
const hold = (network: string, count: number) =>
  Array.from({ length: count }, () => provider.finish(callback, secrets, network));

describe("log-ins that wait for a token", () => {
  let waiting: ServerResponse[];
  beforeEach(() => {
    waiting = [];
    serve((_, response) => void waiting.push(response));
  });

  async function expectServed(held: readonly ReturnType<typeof provider.finish>[]): Promise<void> {
    await expect.poll(() => waiting.length).toBe(held.length);
    for (const response of waiting) sendJson(response, { error: "invalid_grant" }, 400);
    expect((await Promise.all(held)).every(({ status }) => status === "refused")).toBe(true);
    expect(warnings).toEqual([]);
  }

  it("are at most 10 for each address", async () => {
    const held = hold("192.0.2.1", 10);
    const further = await provider.finish(callback, secrets, "192.0.2.1");
    expect(further).toEqual(busy("10 log-ins of this address wait for the provider"));
    await expectServed([...held, ...hold("192.0.2.2", 1)]);
    waiting = [];
    await expectServed(hold("192.0.2.1", 10));
  });

  it("are at most 100 over all addresses, while further log-ins can begin", async () => {
    const held = Array.from({ length: 10 }, (_, index) => hold(`192.0.2.${index}`, 10)).flat();
    const further = await provider.finish(callback, secrets, "192.0.2.99");
    expect(further).toEqual(busy("100 log-ins wait for the provider"));
    expect(await provider.begin("http://127.0.0.1/back")).toMatchObject({ status: "begun" });
    await expectServed(held);
  });
});
