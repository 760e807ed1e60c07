import { quote } from "@stele/wire";
import type * as z from "zod";

/** Names of JSON's types in messages. */
const typeNames: Readonly<Record<string, string>> = {
  object: "an object",
  record: "an object",
  array: "a list",
  string: "text",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
};

/** Describes what a schema refuses in a JSON value, with its place: `access.roles.shop[0].actions is missing`. */
export function describeIssue(issue: z.core.$ZodIssue, value: unknown, name: string): string {
  const place = issue.path.reduce<string>(
    (text, key) => text + (typeof key === "number" ? `[${key}]` : `.${String(key)}`),
    name,
  );
  const found = issue.path.reduce<unknown>((part, key) => Object(part)[key], value); // Undefined below a part that is not an object.
  if (found === undefined) return `${place} is missing`;
  if (issue.code === "unrecognized_keys") return `${place}: ${issue.keys.map(quote).join(", ")} is not a known field`;
  if (issue.code === "invalid_type")
    return `${place}: ${quote(found)} is not ${typeNames[issue.expected] ?? issue.expected}`;
  if (issue.code === "invalid_value") return `${place}: ${quote(found)} is not one of ${issue.values.join(", ")}`;
  return `${place}: ${issue.message}`;
}
