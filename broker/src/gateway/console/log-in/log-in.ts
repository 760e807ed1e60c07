/**
 * Secrets that the browser keeps while its user is at the provider. The broker does not trust them: the provider compares them with the values that it was
 * sent.
 */
export interface LogInSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** `refused`: this log-in failed, for a reason that its user may read. `unavailable`: every log-in fails, for a reason for the operator. */
export interface LogInFault {
  readonly status: "refused" | "unavailable";
  readonly reason: string;
}

/** An identity provider. Its calls take a bounded time, and never reject. */
export interface LogInProvider {
  /** A problem that the operator must solve; undefined for none. */
  findWarning(): string | undefined;
  /** Begins a log-in; `url` is the address to which the browser goes. */
  begin(
    redirectUri: string,
  ): Promise<{ readonly status: "begun"; readonly url: string; readonly secrets: LogInSecrets } | LogInFault>;
  /** Gets the token for `callback`, the address to which the provider sent the browser back. Few calls of one network wait at once; further ones fail. */
  finish(
    callback: URL,
    secrets: LogInSecrets,
    network: string,
  ): Promise<{ readonly status: "finished"; readonly token: string } | LogInFault>;
}

/** A way to log in to the console. */
export interface LogIn {
  /** Name on its button and in its addresses. */
  readonly name: string;
  /** Issuer of its tokens. */
  readonly issuer: string;
  /** Origins of the console that the provider knows. */
  readonly origins: readonly string[];
  readonly provider: LogInProvider;
}

/** The origin by which a browser reached this broker; undefined if the log-in has no such origin. */
export function findOrigin({ origins }: LogIn, host: string | undefined): string | undefined {
  return origins.find((origin) => new URL(origin).host === host?.toLowerCase());
}
