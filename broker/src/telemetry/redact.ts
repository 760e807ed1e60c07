/** Replaces a secret in a log line. */
export const redacted = "(redacted)";

/** Maximum nesting that is searched; deeper values are removed. */
const depthMax = 5;
const secretKey = /secret|password|privatekey|authorization/i;
const urlKey = /url$/i;
const defects: ReadonlySet<unknown> = new Set(["TypeError", "ReferenceError", "RangeError", "AssertionError"]);

const secretOfKey = /(stele_[0-9a-f]{16}_)[\w-]+/g;

/**
 * Finds the secret of a key, and the claims and signature of a token, even if their end is cut off. Before them, the line may have letters or digits of a
 * JSON escape or a percent-encoding. A token begins with `{"` in Base64, or with `{`, white space and `"`, as some issuers write it. The pattern
 * also matches a header without claims, as a whole: otherwise each `-ey` in the header would begin another search up to the header's end.
 */
const credentials =
  /(stele_[0-9a-f]{16}_)[\w-]+|(e(?:yJ|yA[gi]|w[ko][giJ]|w0K)(?<=(?:\b|\\[bfnrt]|\\u[0-9a-f]{4}|%[0-9A-Fa-f]{2})e(?:yJ|[yw]\w\w))(?:(?<=eyJ)|(?=[\w-]{16}))[\w-]+)(\.[\w-]+(?:\.[\w-]*)?)?/g;

/** A log line without keys and tokens. A client may put one in a wrong place, such as a path or a topic, and the refusal quotes that text. */
export function redactCredentials(line: string): string {
  return line.replaceAll(credentials, (_, ...found: readonly (string | undefined)[]) => {
    const [key, header = "", rest] = found;
    if (key !== undefined) return `${key}${redacted}`;
    return `${header.replaceAll(secretOfKey, `$1${redacted}`)}${rest === undefined ? "" : `.${redacted}`}`;
  });
}

/** A copy of log fields without secrets. Removes the values of fields whose names mark a secret, and the user-info, query and fragment of urls. */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return redactObject(fields, depthMax);
}

/** An address without parts that may be secret: user-info, query and fragment. Replaces any other text as a whole. */
export function redactUrl(text: string): string {
  if (!URL.canParse(text)) return redacted;
  const url = new URL(text);
  const hidden = url.username !== "" || url.password !== "" ? `${redacted}@` : "";
  return `${url.protocol}//${hidden}${url.host}${url.pathname}${url.search === "" ? "" : `?${redacted}`}`;
}

function redactObject(fields: object, depth: number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, redactValue(key, { value, depth })]));
}

function redactValue(key: string, { value, depth }: { value: unknown; depth: number }): unknown {
  if (value === undefined || value === null) return value;
  if (secretKey.test(key)) return redacted;
  if (urlKey.test(key) && typeof value === "string") return redactUrl(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object") return value;
  if (value instanceof Error) return describeError(value, depth);
  if (depth === 0) return "…";
  if (Array.isArray(value)) return value.map((entry: unknown) => redactValue(key, { value: entry, depth: depth - 1 }));
  return isPlain(value) ? redactObject(value, depth - 1) : value;
}

function describeError(error: Error, depth: number): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const own = "code" in error ? { code: error.code } : {};
  const causes =
    cause === undefined || depth === 0 ? {} : { cause: redactValue("cause", { value: cause, depth: depth - 1 }) };
  const described = { name, message, ...own, stack, ...causes };
  return "retry" in error && error.retry === true ? withoutStacks(described) : described;
}

/** A failure that a retry may fix, such as an unreachable server, is not a defect in the code, so its stack is of no use. Its cause may be a defect. */
function withoutStacks(described: object): Record<string, unknown> {
  const isDefect = "name" in described && defects.has(described.name);
  const entries = Object.entries(described).filter(([key]) => key !== "stack" || isDefect);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, key === "cause" && isObject(value) ? withoutStacks(value) : value]),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
