import { expect, it } from "vitest";
import * as z from "zod";
import { describeIssue } from "./describe-issue.ts";

const schema = z.strictObject({
  roles: z.record(z.string(), z.array(z.strictObject({ actions: z.array(z.enum(["open", "read"])) }))).default({}),
  audience: z.union([z.string(), z.array(z.string())]),
  limit: z.int().min(1).max(9).default(1),
});

it.each<[unknown, string]>([
  ["on", 'access: "on" is not an object'],
  [{}, "access.audience is missing"],
  [{ audience: "a", roles: { shop: [{}] } }, "access.roles.shop[0].actions is missing"],
  [{ audience: "a", roles: { shop: {} } }, "access.roles.shop: {} is not a list"],
  [
    { audience: "a", roles: { shop: [{ actions: ["fly"] }] } },
    'access.roles.shop[0].actions[0]: "fly" is not one of open, read',
  ],
  [{ audience: "a", role: {} }, 'access: "role" is not a known field'],
  [{ audience: "a", limit: "5" }, 'access.limit: "5" is not a number'],
  [{ audience: "a", limit: 10 }, "access.limit: Too big: expected number to be <=9"],
])("describes what is wrong with %j", (value, message) => {
  const issues = schema.safeParse(value).error?.issues ?? [];
  expect(issues.map((issue) => describeIssue(issue, value, "access"))).toEqual([message]);
});
