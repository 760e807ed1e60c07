import { describe, expect, it, test } from "vitest";
import { loadConfig } from "./load-config.ts";

const load = (env: Readonly<Record<string, string>>) =>
  loadConfig({ env, argv: [], readFile: () => "", version: "1.2.3" });
const loaded = (env: Readonly<Record<string, string>>) => {
  const outcome = load(env);
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return outcome.config;
};
const problemOf = (env: Readonly<Record<string, string>>): string => {
  const outcome = load(env);
  return outcome.status === "refused" ? outcome.problems.join("\n") : outcome.status;
};

it("access control is off on loopback, without any setting", () => {
  expect(loaded({})).toMatchObject({ access: undefined, allowAnonymous: false });
});

const exposedHosts = ["0.0.0.0", "::", "10.0.0.1", "broker.internal", "127.evil.example"];
test.each(exposedHosts)("refuses the host %s without access or allowAnonymous", (host) => {
  expect(problemOf({ STELE_HOST: host })).toContain("STELE_ALLOW_ANONYMOUS=true");
  expect(loaded({ STELE_HOST: host, STELE_ALLOW_ANONYMOUS: "true" }).host).toBe(host);
  expect(loaded({ STELE_HOST: host, STELE_ACCESS: "{}" }).access).toEqual({
    roles: {},
    certificates: [],
    tokens: [],
    quotas: { tenants: {}, principals: {} },
  });
});

test.each(["127.0.0.1:9090", "localhost:9090", "[::1]:9090"])(
  "says that the host %s has a port, and not to allow anonymous callers",
  (host) => {
    const env = { STELE_HOST: host, STELE_ADMIN_HOST: host };
    const problem = `${JSON.stringify(host)} is not an address or a host name without a port`;
    expect(problemOf(env)).toBe(`STELE_HOST: ${problem}\nSTELE_ADMIN_HOST: ${problem}`);
  },
);

test.each(["0.0.0.0", "::", "broker.internal"])(
  "refuses the adminHost %s without access control or allowAnonymous",
  (adminHost) => {
    const env = { STELE_ADMIN_HOST: adminHost, STELE_ADMIN_PORT: "8081" };
    expect(problemOf(env)).toContain(`STELE_ADMIN_HOST is ${adminHost}`);
    expect(loaded({ ...env, STELE_ALLOW_ANONYMOUS: "true" }).adminHost).toBe(adminHost);
    expect(loaded({ ...env, STELE_ACCESS: "{}" }).adminHost).toBe(adminHost);
    expect(loaded({ STELE_ADMIN_HOST: adminHost }).adminHost).toBe(adminHost); // Without adminPort or access, operators have no listener.
  },
);

test("refuses access together with allowAnonymous", () => {
  expect(problemOf({ STELE_ACCESS: "{}", STELE_ALLOW_ANONYMOUS: "true" })).toContain("has no effect");
});

it("reads roles; a rule without an effect allows", () => {
  const roles = { producer: [{ actions: ["publish", "open"], filter: "${tenant}/#", groupId: "1" }] };
  expect(loaded({ STELE_ACCESS: JSON.stringify({ roles }) }).access?.roles).toEqual({
    producer: [{ effect: "allow", ...roles.producer[0] }],
  });
});

const tokens = { issuer: "https://i", audience: "stele", keys: "https://i/keys" };

it("reads token issuers, with defaults", () => {
  const access = loaded({ STELE_ACCESS: JSON.stringify({ tokens: [tokens] }) }).access;
  expect(access?.tokens).toEqual([
    {
      ...tokens,
      audience: ["stele"],
      algorithms: ["RS256", "ES256"],
      principalClaim: "sub",
      rolesClaim: "roles",
      roles: {},
      defaultRoles: [],
      lastingRoles: [],
    },
  ]);
});

test.each([
  ["an algorithm with a shared secret", [{ ...tokens, algorithms: ["HS256"] }], "algorithms"],
  ["the algorithm none", [{ ...tokens, algorithms: ["none"] }], "algorithms"],
  ["keys at an http URL of another machine", [{ ...tokens, keys: "http://i.example/keys" }], "https"],
  ["keys at a URL with a password", [{ ...tokens, keys: "https://a:b@i.example/keys" }], "without a password"],
  ["an unknown role", [{ ...tokens, roles: { a: ["unknown"] } }], "unknown is not a role"],
  ["several issuers without tenants", [tokens, { ...tokens, issuer: "j" }], "each needs a tenant"],
  [
    "a tenant from a claim beside another issuer",
    [
      { ...tokens, tenantClaim: "t" },
      { ...tokens, issuer: "j", tenant: "a" },
    ],
    "each needs a tenant",
  ],
  [
    "two issuers of one tenant",
    [
      { ...tokens, tenant: "a" },
      { ...tokens, issuer: "j", tenant: "a" },
    ],
    "has the tenant a",
  ],
  [
    "the same issuer twice",
    [
      { ...tokens, tenant: "a" },
      { ...tokens, tenant: "b" },
    ],
    "is there already",
  ],
  ["two sources of the tenant", [{ ...tokens, tenant: "a", tenantClaim: "b" }], "not both"],
])("refuses tokens with %s", (_, issuers, problem) => {
  expect(problemOf({ STELE_ACCESS: JSON.stringify({ tokens: issuers }) })).toContain(problem);
});

it("accepts one issuer without a tenant beside issuers of tenants", () => {
  const issuers = [tokens, { ...tokens, issuer: "j", tenant: "a" }, { ...tokens, issuer: "k", tenant: "b" }];
  expect(loaded({ STELE_ACCESS: JSON.stringify({ tokens: issuers }) }).access?.tokens).toHaveLength(3);
});

it("reads quotas of tenants and principals", () => {
  const quota = { publishesPerSecond: 1, bytesPerSecond: 2, connections: 3, callbacksPerSecond: 4, callbackHosts: 5 };
  const stored = { subscriptions: 6, sessions: 7 };
  const quotas = {
    tenants: { acme: { ...quota, ...stored, topics: 8 }, "*": {} },
    principals: { "acme/shop": { ...quota, ...stored }, "acme/auth0|6f59": quota, "oid:a@b=~": quota },
  };
  expect(loaded({ STELE_ACCESS: JSON.stringify({ quotas }) }).access?.quotas).toEqual(quotas);
});

test.each([
  ["yes", "access"],
  ['{"quotas": {"principals": {"shop": {"topics": 1}}}}', "topics"],
  ['{"quotas": {"tenants": {"acme": {"sessions": 0}}}}', "access.quotas.tenants.acme.sessions"],
  ['{"quotas": {"principals": {"a/b/c": {}}}}', "access.quotas.principals"],
  ['{"quotas": {"principals": {"a/": {}}}}', "access.quotas.principals"],
  ['{"rules": {}}', "rules"],
  ['{"roles": {"a b": []}}', "a b"],
  ['{"roles": {"admin": []}}', "admin is built in"],
  ['{"roles": {"a": [{"actions": []}]}}', "access.roles.a[0].actions"],
  ['{"roles": {"a": [{"actions": ["fly"]}]}}', "access.roles.a[0].actions[0]"],
  ['{"roles": {"a": [{"actions": ["read"], "topic": "x"}]}}', "topic"],
  ['{"roles": {"a": [{"actions": ["read"], "filter": "a/#/b"}]}}', "access.roles.a[0].filter"],
  ['{"roles": {"a": [{"actions": ["read"], "filter": "${user}/#"}]}}', "${principal} and ${tenant}"],
  ['{"roles": {"a": [{"actions": ["admin"], "filter": "a"}]}}', "admin belongs to no topic"],
  [`{"roles": {"a": [{"effect": "deny", "actions": ["read"], "filter": "\${tenant}/${"x".repeat(200)}"}]}}`, "filter"],
])("refuses the access setting %s", (access, problem) => {
  expect(problemOf({ STELE_ACCESS: access })).toContain(problem);
});

const access = (...certificates: readonly object[]) => ({ STELE_ACCESS: JSON.stringify({ certificates }) });

describe("access.certificates", () => {
  const holder = { name: "DNS:a.example", principal: "a", roles: ["admin"] };
  const ca = {
    STELE_HTTP_TLS_CERTIFICATE_FILE: "c",
    STELE_HTTP_TLS_KEY_FILE: "k",
    STELE_HTTP_TLS_CLIENT_CA_FILE: "ca",
  };

  it("are accepted with a client CA file", () => {
    expect(loaded({ ...ca, ...access(holder) }).access?.certificates).toEqual([holder]);
  });

  it("are refused without a client CA file", () => {
    expect(problemOf(access(holder))).toContain(
      "access.certificates has no effect without one of STELE_HTTP_TLS_CLIENT_CA",
    );
  });

  it.each([
    ["with the same name twice", [holder, holder], 'certificates[1].name: "DNS:a.example" is there twice'],
    ["with an unknown role", [{ ...holder, roles: ["x"] }], 'certificates[0].roles: there is no role "x"'],
    [
      "with a name that does not say its kind",
      [{ ...holder, name: "a.example" }],
      "a name begins with its kind, such as DNS:",
    ],
    ["with the principal anonymous", [{ ...holder, principal: "anonymous" }], "gives no credential"],
    ["with a plus in the principal", [{ ...holder, principal: "a+" }], "1 to 64 letters"],
    ["with a slash in the principal", [{ ...holder, principal: "b/a" }], "1 to 64 letters"],
  ])("are refused %s", (_, certificates, problem) => {
    expect(problemOf({ ...ca, ...access(...certificates) })).toContain(problem);
  });
});
