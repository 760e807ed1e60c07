import { expect, it, test } from "vitest";
import { loadConfig } from "./load-config.ts";

const logIn = { name: "acme", clientId: "stele", origins: ["https://events.example.org", "http://localhost:8080"] };
const issuer = { issuer: "https://id.example", audience: "stele", keys: "https://id.example/keys", tenant: "acme" };
const other = { ...issuer, issuer: "https://id.globex.example", tenant: "globex" };

function load(tokens: readonly object[], env: Readonly<Record<string, string>> = {}) {
  const given = { STELE_ACCESS: JSON.stringify({ tokens }), ...env };
  return loadConfig({ env: given, argv: [], readFile: () => "", version: "1.2.3" });
}

it("reads a log-in, with defaults", () => {
  const outcome = load([{ ...issuer, logIn }]);
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  expect(outcome.config.access?.tokens[0]?.logIn).toEqual({ ...logIn, scopes: ["openid"], parameters: {} });
});

test.each<[string, object, string]>([
  ["a slash in its name", { name: "a/b" }, "a name is 1 to 64"],
  ["the name ..", { name: ".." }, "a name is 1 to 64"],
  ["an origin over plain HTTP", { origins: ["http://events.example.org"] }, "an origin is a URL without a path"],
  ["an origin with a path", { origins: ["https://events.example.org/"] }, "an origin is a URL without a path"],
  ["* as an origin", { origins: ["*"] }, "an origin is a URL without a path"],
  ["no origin", { origins: [] }, "origins"],
  ["no openid", { scopes: ["profile"] }, "scopes must contain openid"],
  ["a space in a scope", { scopes: ["openid", "profile email"] }, "a scope is 1 to 256"],
  ["a parameter that the broker sets itself", { parameters: { redirect_uri: "x" } }, "redirect_uri"],
  ["a parameter that would replace the broker's", { parameters: { request_uri: "x" } }, "request_uri"],
  ["the client secret instead of its file", { clientSecret: "x" }, "clientSecret"],
])("refuses a log-in with %s", (_, wrong, problem) => {
  expect(load([{ ...issuer, logIn: { ...logIn, ...wrong } }])).toMatchObject({
    status: "refused",
    problems: [expect.stringContaining(problem)],
  });
});

test.each<[string, readonly object[], Readonly<Record<string, string>>, string]>([
  [
    "of an issuer that is not a URL",
    [{ ...issuer, issuer: "acme", logIn }],
    {},
    "access.tokens[0].logIn: the issuer must be an https URL",
  ],
  [
    "of an issuer at an http URL",
    [{ ...issuer, issuer: "http://id.example", logIn }],
    {},
    "the issuer must be an https URL",
  ],
  [
    "with the name of another log-in",
    [
      { ...issuer, logIn },
      { ...other, logIn },
    ],
    {},
    'another log-in has the name "acme"',
  ],
  ["if the console is off", [{ ...issuer, logIn }], { STELE_CONSOLE: "off" }, "no effect if STELE_CONSOLE is off"],
])("refuses a log-in %s", (...[, tokens, env, problem]) => {
  const outcome = load(tokens, env);
  expect(outcome.status === "refused" ? outcome.problems.join("\n") : outcome.status).toContain(problem);
});
