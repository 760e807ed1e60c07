import { quote } from "@stele/wire";
import { z } from "zod";

/** Maximum number of origins of one log-in to the console. */
const originsMax = 20;

/**
 * Parameters of the authorization request that the settings must not contain. The broker sets most of them itself. The others would override these,
 * such as `request`, or ask the provider for something that the broker does not check, such as `max_age`.
 */
const reservedParameters: ReadonlySet<string> = new Set([
  "client_id",
  "client_secret",
  "code",
  "code_challenge",
  "code_challenge_method",
  "code_verifier",
  "grant_type",
  "max_age",
  "nonce",
  "redirect_uri",
  "request",
  "request_uri",
  "response_mode",
  "response_type",
  "scope",
  "state",
]);

/** The `logIn` setting of a token issuer: how people log in to the console through this issuer. */
export const consoleLogIn = z.strictObject({
  name: z
    .string()
    .regex(
      /^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$/,
      "a name is 1 to 64 letters, digits, dots, hyphens or underscores, and begins with a letter or digit",
    ),
  clientId: z.string().min(1).max(256),
  clientSecretFile: z.string().min(1).optional(),
  scopes: z
    .array(
      z
        .string()
        .regex(
          /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/,
          "a scope is 1 to 256 visible ASCII characters, without quotation marks and backslashes",
        ),
    )
    .refine((scopes) => scopes.includes("openid"), "scopes must contain openid")
    .default(["openid"]),
  parameters: z
    .record(z.string(), z.string().max(1_024))
    .refine((given) => !Object.keys(given).some((name) => reservedParameters.has(name)), {
      message: `parameters must not contain ${[...reservedParameters].join(", ")}`,
    })
    .default({}),
  origins: z
    .array(
      z
        .string()
        .refine(
          isSafeOrigin,
          "an origin is a URL without a path, such as https://events.example.org; http is allowed for this machine only",
        ),
    )
    .min(1)
    .max(originsMax),
});

interface Issuer {
  readonly issuer: string;
  readonly logIn?: z.output<typeof consoleLogIn> | undefined;
}

/** Problems with an issuer's log-in: in its own settings, and conflicts with the log-ins of other issuers. */
export function findLogInProblems({ issuer, logIn }: Issuer, others: readonly Issuer[]): readonly string[] {
  if (logIn === undefined) return [];
  return [
    ...(isSafeUrl(issuer)
      ? []
      : ["the issuer must be an https URL without a password, or an http URL of this machine"]),
    ...(others.some((other) => other.logIn?.name === logIn.name)
      ? [`another log-in has the name ${quote(logIn.name)}`]
      : []),
  ];
}

/**
 * Whether nobody can read or change the traffic to a URL: it is https, or http on this machine. Returns false for a URL with a user name or password:
 * `fetch` rejects it, and its error and the log would show the password.
 */
export function isSafeUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.username !== "" || url.password !== "") return false;
  const isLocal = url.protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  return url.protocol === "https:" || isLocal;
}

/** Whether a text is a safe origin as browsers write it. At any other origin, browsers refuse the cookies of a log-in. */
function isSafeOrigin(text: string): boolean {
  return isSafeUrl(text) && new URL(text).origin === text;
}
