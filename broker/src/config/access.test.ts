import { expect, it, test } from "vitest";
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

it("access is off on loopback, without any setting", () => {
  expect(loaded({})).toMatchObject({ access: undefined, allowAnonymous: false });
});

test.each(["0.0.0.0", "::", "10.0.0.1", "broker.internal", "127.evil.example"])("%s needs access", (host) => {
  expect(problemOf({ STELE_HOST: host })).toContain("STELE_ALLOW_ANONYMOUS=true");
  expect(loaded({ STELE_HOST: host, STELE_ALLOW_ANONYMOUS: "true" }).host).toBe(host);
  expect(loaded({ STELE_HOST: host, STELE_ACCESS: "{}" }).access).toEqual({ roles: {} });
});

test.each(["0.0.0.0", "::", "broker.internal"])("the operators' listener at %s needs access too", (adminHost) => {
  const env = { STELE_ADMIN_HOST: adminHost, STELE_ADMIN_PORT: "8081" };
  expect(problemOf(env)).toContain(`STELE_ADMIN_HOST is ${adminHost}`);
  expect(loaded({ ...env, STELE_ALLOW_ANONYMOUS: "true" }).adminHost).toBe(adminHost);
  expect(loaded({ ...env, STELE_ACCESS: "{}" }).adminHost).toBe(adminHost);
  expect(loaded({ STELE_ADMIN_HOST: adminHost }).adminHost).toBe(adminHost); // there is no such listener
});

test("one of access and allowAnonymous is wrong", () => {
  expect(problemOf({ STELE_ACCESS: "{}", STELE_ALLOW_ANONYMOUS: "true" })).toContain("has no effect");
});

it("reads roles, and allows where a rule says nothing else", () => {
  const roles = { producer: [{ actions: ["publish", "open"], filter: "${tenant}/#", groupId: "1" }] };
  expect(loaded({ STELE_ACCESS: JSON.stringify({ roles }) }).access?.roles).toEqual({
    producer: [{ effect: "allow", ...roles.producer[0] }],
  });
});

test.each([
  ["yes", "access"],
  ['{"rules": {}}', "rules"],
  ['{"roles": {"a b": []}}', "a b"],
  ['{"roles": {"admin": []}}', "admin is there already"],
  ['{"roles": {"a": [{"actions": []}]}}', "access.roles.a.0.actions"],
  ['{"roles": {"a": [{"actions": ["fly"]}]}}', "access.roles.a.0.actions.0"],
  ['{"roles": {"a": [{"actions": ["read"], "topic": "x"}]}}', "topic"],
  ['{"roles": {"a": [{"actions": ["read"], "filter": "a/#/b"}]}}', "access.roles.a[0].filter"],
  ['{"roles": {"a": [{"actions": ["read"], "filter": "${user}/#"}]}}', "${principal} and ${tenant}"],
  ['{"roles": {"a": [{"actions": ["admin"], "filter": "a"}]}}', "admin is of no topic"],
  [`{"roles": {"a": [{"effect": "deny", "actions": ["read"], "filter": "\${tenant}/${"x".repeat(200)}"}]}}`, "filter"],
])("refuses %s", (access, problem) => {
  expect(problemOf({ STELE_ACCESS: access })).toContain(problem);
});
