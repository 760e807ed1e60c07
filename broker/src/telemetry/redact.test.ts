import { expect, test } from "vitest";
import { redactCredentials, redactFields, redactUrl } from "./redact.ts";

test.each([
  ["https://a.example/hook", "https://a.example/hook"],
  ["https://user:pass@a.example:81/hook", "https://(redacted)@a.example:81/hook"],
  ["https://token@a.example/", "https://(redacted)@a.example/"],
  ["https://a.example/hook?token=t#f", "https://a.example/hook?(redacted)"],
  ["not a url", "(redacted)"],
])("logs the url %s as %s", (url, shown) => {
  expect(redactUrl(url)).toBe(shown);
});

const key = `stele_0123456789abcdef_${"aB-_".repeat(10)}xyz`;

test.each<readonly [string, string]>([
  [`nothing at GET "/${key}/x"`, 'nothing at GET "/stele_0123456789abcdef_(redacted)/x"'],
  [`${key}, ${key.slice(0, 40)}…`, "stele_0123456789abcdef_(redacted), stele_0123456789abcdef_(redacted)…"],
  [`no claims eyJhbGciOiJIUzI1NiJ9-${key}`, "no claims eyJhbGciOiJIUzI1NiJ9-stele_0123456789abcdef_(redacted)"],
  [`eyJhbGciOiJIUzI1NiJ9-${key}.eyJzdWIi`, "eyJhbGciOiJIUzI1NiJ9-stele_0123456789abcdef_(redacted).(redacted)"],
  ["topic eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl", "topic eyJhbGciOiJIUzI1NiJ9.(redacted)"],
  ["cut eyJhbGciOiJIUzI1NiJ9.eyJzdWIi…", "cut eyJhbGciOiJIUzI1NiJ9.(redacted)…"],
  [JSON.stringify({ topic: `a\n${key}` }), '{"topic":"a\\nstele_0123456789abcdef_(redacted)"}'],
  [
    `"/Bearer%20${key}", key_${key}`,
    '"/Bearer%20stele_0123456789abcdef_(redacted)", key_stele_0123456789abcdef_(redacted)',
  ],
  [JSON.stringify({ topic: "a\teyJhbGciOiJIUzI1NiJ9.eyJz" }), '{"topic":"a\\teyJhbGciOiJIUzI1NiJ9.(redacted)"}'],
  ['"/Bearer%20eyJhbGciOiJIUzI1NiJ9.eyJz"', '"/Bearer%20eyJhbGciOiJIUzI1NiJ9.(redacted)"'],
  ...['{ "alg": "RS256" }', '{\n  "alg": "RS256"\n}', '{\r\n"alg":"RS256"}', '{\t"alg":"RS256"}'].map((header) => {
    const text = Buffer.from(header).toString("base64url");
    return [JSON.stringify({ topic: `a\n${text}.eyJz` }), `{"topic":"a\\n${text}.(redacted)"}`] as const;
  }),
  ["topic honeyJar.level, host ewok.example.org, eyAin.a", "topic honeyJar.level, host ewok.example.org, eyAin.a"],
  ["stele_bytes_in_flight, key 0123456789abcdef", "stele_bytes_in_flight, key 0123456789abcdef"],
])("logs the line %j as %j", (line, shown) => {
  expect(redactCredentials(line)).toBe(shown);
});

test.each<[Record<string, unknown>, Record<string, unknown>]>([
  [
    { topic: "a", count: 3, none: undefined },
    { topic: "a", count: 3, none: undefined },
  ],
  [{ secret: "whsec_x" }, { secret: "(redacted)" }],
  [{ secret: undefined }, { secret: undefined }],
  [
    { subscription: { id: "1", secret: "x", url: "http://u:p@h/" } },
    { subscription: { id: "1", secret: "(redacted)", url: "http://(redacted)@h/" } },
  ],
  [{ list: [{ secret: "x" }] }, { list: [{ secret: "(redacted)" }] }],
  [{ callbackUrl: "http://h/?t=1" }, { callbackUrl: "http://h/?(redacted)" }],
  [{ block: 2n ** 70n }, { block: "1180591620717411303424" }],
  [{ a: { a: { a: { a: { a: { a: { a: 1 } } } } } } }, { a: { a: { a: { a: { a: { a: "…" } } } } } }],
])("redacts secrets and urls in log fields, case %#", (fields, shown) => {
  expect(redactFields(fields)).toEqual(shown);
});

test("keeps the code and the causes of an error", () => {
  const error = Object.assign(new Error("outer", { cause: new TypeError("inner") }), { code: 100501 });
  expect(redactFields({ error })).toMatchObject({
    error: { name: "Error", message: "outer", code: 100501, cause: { name: "TypeError", message: "inner" } },
  });
});

test("omits the stack of an error that a retry may fix, and of its causes unless they are defects", () => {
  const defect = new TypeError("a defect");
  const cause = new Error("inner", { cause: defect });
  const error = Object.assign(new Error("outer", { cause }), { code: 200207, retry: true });
  expect(redactFields({ error })).toEqual({
    error: {
      name: "Error",
      message: "outer",
      code: 200207,
      cause: {
        name: "Error",
        message: "inner",
        cause: { name: "TypeError", message: "a defect", stack: defect.stack },
      },
    },
  });
  expect(redactFields({ error: Object.assign(error, { retry: false }) })).toMatchObject({
    error: { stack: error.stack, cause: { stack: cause.stack } },
  });
});

test("cuts off an object that contains itself", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  expect(JSON.stringify(redactFields({ cycle }))).toContain("…");
});

test("searches a megabyte of repeated token beginnings only once", () => {
  const line = "-eyJ".repeat(262_144);
  expect(redactCredentials(line)).toBe(line);
});
