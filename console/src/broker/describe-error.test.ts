import { SteleError } from "@stele/client";
import { expect, test } from "vitest";
import { describeError } from "./describe-error.ts";

test.each([
  ["GET", "/admin/v1/groups", /operators' pages may be served at another port \(adminPort\): open the console there$/],
  ["GET", "/one/admin/v1/groups", /operators' pages may be served at another port/],
  ["POST", "/jsonrpc", /the calls of clients may be served at another port: open the console there$/],
  ["GET", "/one/tail", /the calls of clients may be served at another port/],
])("a port that does not serve %s %s gets advice on which port does", (method, path, advice) => {
  const message = `a parameter is missing or malformed: there is nothing at ${method} "${path}"`;
  expect(describeError(new SteleError(message, { code: 200001, retry: false }))).toMatch(advice);
});
