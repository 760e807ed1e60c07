import { quote } from "@stele/wire";
import { z } from "zod";

/** Maximum number of origins of one log-in to the console. */
const originsMax = 20;

/**
 * Request parameters that the settings must not add: the broker sets them itself, or they would replace its own, or ask for something that it does not
 * check.
 */
const ownParameters: ReadonlySet<string> = new Set([
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

/** The `logIn` of an issuer of tokens: how people get one of its tokens in the console. */
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
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, "a scope has no space"))
    .refine((scopes) => scopes.includes("openid"), "scopes must contain openid")
    .default(["openid"]),
  parameters: z
    .record(z.string(), z.string().max(1_024))
    .refine((given) => !Object.keys(given).some((name) => ownParameters.has(name)), {
      message: `parameters must not hold any of ${[...ownParameters].join(", ")}`,
    })
    .default({}),
  origins: z
    .array(z.string().refine(isSafeOrigin, "an origin is such as https://events.example.org, or http of this machine"))
    .min(1)
    .max(originsMax),
});

interface Issuer {
  readonly issuer: string;
  readonly logIn?: z.output<typeof consoleLogIn> | undefined;
}

/** Problems of an issuer's log-in, by itself and beside those of other issuers. */
export function findLogInProblems({ issuer, logIn }: Issuer, others: readonly Issuer[]): readonly string[] {
  if (logIn === undefined) return [];
  return [
    ...(isSafeUrl(issuer) ? [] : ["the issuer is no https URL, which log-ins need"]),
    ...(others.some((other) => other.logIn?.name === logIn.name)
      ? [`another log-in has the name ${quote(logIn.name)}`]
      : []),
  ];
}

/**
 * Whether nobody can read or change the traffic to a URL: it has https, or is http on this machine. A URL with a password is refused: `fetch` takes none, and
 * its error, like the log, would show the password.
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
