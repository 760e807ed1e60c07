import { innermostReason } from "./key-source.ts";

/** `refused`: this log-in failed, for a reason that its user may read. `unavailable`: every log-in fails, for a reason for the operator. */
export interface ProviderFault {
  readonly status: "refused" | "unavailable";
  readonly reason: string;
}

/** Errors that a provider sends by way of the browser (RFC 6749, section 4.1.2.1; RFC 8707, section 2). Their names help the operator. */
const settingErrors: ReadonlySet<unknown> = new Set([
  "invalid_request",
  "invalid_scope",
  "invalid_target",
  "server_error",
  "temporarily_unavailable",
  "unauthorized_client",
  "unsupported_response_type",
]);

/**
 * Translates an error of `openid-client`. A fault that a browser alone can cause is `refused`: otherwise anybody could make the broker report that the
 * provider is down. A reason quotes names of errors and claims only: no other text of a browser or provider, and nothing of a token.
 */
export function toFault(error: unknown): ProviderFault {
  const { name, code, error: answered, cause } = fieldsOf(error);
  if (name === "AuthorizationResponseError") {
    if (settingErrors.has(answered)) return refused(`the provider answers ${String(answered)}`);
    return refused(answered === "access_denied" ? "the provider denied it" : "the provider answered with an error");
  }
  if (name === "ResponseBodyError") {
    if (answered === "invalid_grant")
      return refused("its code was used before, is too old, or belongs to another log-in");
    // Some providers answer this to a malformed code.
    if (answered === "invalid_request") return refused(`the provider answers ${answered} when asked for a token`);
    return unavailable(`it answers ${isName(answered) ? answered : "an error"} when asked for a token`);
  }
  if (code === "OAUTH_TIMEOUT") return unavailable("it does not answer in time");
  if (code === "OAUTH_RESPONSE_IS_NOT_CONFORM") {
    return unavailable(`it answers with HTTP status ${String(fieldsOf(cause).status)}`);
  }
  if (code === "OAUTH_RESPONSE_IS_NOT_JSON") {
    return unavailable(`it answers with HTTP status ${String(fieldsOf(cause).status)} and no JSON`);
  }
  const { parameters, claim } = fieldsOf(fieldsOf(cause).cause);
  if (parameters !== undefined) return refused("the answer belongs to another log-in, or comes from another provider");
  if (code === "OAUTH_JWT_CLAIM_COMPARISON_FAILED") {
    return refused(`the ID token belongs to another log-in: ${isName(claim) ? `its ${claim}` : "a claim"} differs`);
  }
  if (isName(code)) return unavailable(`its answer breaks OpenID Connect (${code})`);
  return unavailable(`it cannot be asked: ${innermostReason(error)}`);
}

/** Whether the provider may have moved, or changed the client's secret. */
export function isStale(error: unknown): boolean {
  const { name, code, error: answered } = fieldsOf(error);
  if (name === "ResponseBodyError") return answered === "invalid_client";
  if (name === "WWWAuthenticateChallengeError" || code === "OAUTH_TIMEOUT") return true;
  return !isName(code); // `fetch` failed.
}

function refused(reason: string): ProviderFault {
  return { status: "refused", reason };
}

function unavailable(reason: string): ProviderFault {
  return { status: "unavailable", reason };
}

function isName(value: unknown): value is string {
  return typeof value === "string" && /^\w{1,64}$/.test(value);
}

type Fields = Readonly<
  Record<"name" | "code" | "error" | "cause" | "status" | "parameters" | "claim" | "message", unknown>
>;

function fieldsOf(value: unknown): Partial<Fields> {
  return typeof value === "object" && value !== null ? value : {};
}
