/** What the browser keeps while its user is at the provider. Nothing in it is trusted: the provider compares it with what it was sent. */
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
  /** What the operator has to see to; undefined for nothing. */
  findWarning(): string | undefined;
  /** The address to send the browser to. */
  begin(
    redirectUri: string,
  ): Promise<{ readonly status: "begun"; readonly url: string; readonly secrets: LogInSecrets } | LogInFault>;
  /** The token for an address to which the provider sent the browser back. A few of one network wait at once; further ones fail. */
  finish(
    callback: URL,
    secrets: LogInSecrets,
    network: string,
  ): Promise<{ readonly status: "finished"; readonly token: string } | LogInFault>;
}

/** A way to log in to the console. */
export interface LogIn {
  /** As its button and its addresses have it. */
  readonly name: string;
  /** Of its tokens. */
  readonly issuer: string;
  /** Where browsers find the console: those that the provider knows. */
  readonly origins: readonly string[];
  readonly provider: LogInProvider;
}

/** The origin by which a browser reached this broker; undefined where it cannot log in. */
export function findOrigin({ origins }: LogIn, host: string | undefined): string | undefined {
  return origins.find((origin) => new URL(origin).host === host?.toLowerCase());
}
