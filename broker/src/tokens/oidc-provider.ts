import type { Configuration, CustomFetchOptions } from "openid-client";
import type { Logger } from "../lib/logger.ts";
import { ReportedTrouble } from "../lib/reported-trouble.ts";
import { readBody } from "./key-source.ts";
import { isStale, type ProviderFault, toFault } from "./oidc-fault.ts";

/** How long a provider may take to answer one request, in milliseconds. */
const providerTimeoutMs = 5_000;
/** Log-ins that may wait for a token of one provider at once; the broker refuses further ones. */
const exchangesMax = 100;
/** Log-ins of one network that may wait for a token of one provider at once. */
const exchangesPerAddressMax = 10;
/** How long the endpoints of a provider are remembered, in milliseconds. The client's secret is read again with them. */
const endpointsKeptMs = 3_600_000;

export interface OidcOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly readSecret: (() => string) | undefined;
  readonly scopes: readonly string[];
  /** Further parameters of the authorization and token requests, such as the `resource` that the token is for. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Values that the browser keeps between `begin` and `finish` of a log-in. */
interface Secrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export type Begun = { readonly status: "begun"; readonly url: string; readonly secrets: Secrets } | ProviderFault;
export type Finished = { readonly status: "finished"; readonly token: string } | ProviderFault;

/** Log-ins by OpenID Connect: the authorization code flow with PKCE (RFC 7636), by `openid-client`. */
export class OidcProvider {
  readonly #options: OidcOptions;
  readonly #trouble: ReportedTrouble;
  #configuring: { readonly at: number; readonly configuration: Promise<Configuration> } | undefined;
  /** Number of log-ins that wait for a token, by network. */
  readonly #waiting = new Map<string, number>();
  #waitingCount = 0;

  constructor(options: OidcOptions, { logger }: { readonly logger: Logger }) {
    this.#options = options;
    const own = logger.child({ issuer: options.issuer });
    this.#trouble = new ReportedTrouble(own, "log-in provider failed", "log-in provider answers again");
  }

  /** A warning for the operator if the broker's own requests have failed since the last successful log-in; else undefined. */
  findWarning(): string | undefined {
    const { reason } = this.#trouble;
    return reason === undefined
      ? undefined
      : `log-ins by ${this.#options.issuer} fail, and none has succeeded since: ${reason}`;
  }

  /** Returns the URL to which to send the browser, and what the browser must keep for `finish`. Never rejects. */
  begin(redirectUri: string): Promise<Begun> {
    return this.#run(async () => {
      const openid = await import("openid-client");
      const { scopes, parameters } = this.#options;
      const secrets = {
        state: openid.randomState(),
        nonce: openid.randomNonce(),
        verifier: openid.randomPKCECodeVerifier(),
      };
      const url = openid.buildAuthorizationUrl(await this.#configuration(), {
        ...parameters,
        response_type: "code",
        redirect_uri: redirectUri,
        scope: scopes.join(" "),
        state: secrets.state,
        nonce: secrets.nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(secrets.verifier),
        code_challenge_method: "S256",
      });
      return { status: "begun", url: url.href, secrets };
    });
  }

  /** Exchanges the code in `callback`, the address to which the provider sent the browser back, for an access token. Never rejects. */
  finish(callback: URL, { state, nonce, verifier }: Secrets, network: string): Promise<Finished> {
    const answered = onlyKnown(callback);
    if (answered === undefined) {
      return Promise.resolve({ status: "refused", reason: "the answer has neither a code nor an error" });
    }
    return this.#run(async () => {
      const openid = await import("openid-client");
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
      const configuration = await this.#configuration();
      return this.#takeTurn(network, async () => {
        const { parameters } = this.#options;
        const answer = await openid.authorizationCodeGrant(configuration, answered, checks, parameters);
        this.#trouble.done();
        return { status: "finished", token: answer.access_token };
      });
    });
  }

  async #run<Result>(task: () => Promise<Result>): Promise<Result | ProviderFault> {
    try {
      return await task();
    } catch (error) {
      const fault = toFault(error);
      if (fault.status === "unavailable") {
        if (isStale(error)) this.#configuring = undefined;
        this.#trouble.failed(fault.reason); // The error itself may hold a token.
      }
      return fault;
    }
  }

  /** Runs a token request, within the limits for one network and for all networks together. */
  async #takeTurn<Result>(network: string, task: () => Promise<Result>): Promise<Result | ProviderFault> {
    const own = this.#waiting.get(network) ?? 0;
    if (own >= exchangesPerAddressMax) return toBusy(`${exchangesPerAddressMax} log-ins of this address`);
    if (this.#waitingCount >= exchangesMax) return toBusy(`${exchangesMax} log-ins`);
    this.#waiting.set(network, own + 1);
    this.#waitingCount += 1;
    try {
      return await task();
    } finally {
      const left = (this.#waiting.get(network) ?? 0) - 1;
      if (left > 0) this.#waiting.set(network, left);
      else this.#waiting.delete(network);
      this.#waitingCount -= 1;
    }
  }

  /** The provider's endpoints and the client's secret. Concurrent log-ins share one request. */
  #configuration(): Promise<Configuration> {
    const now = performance.now();
    if (this.#configuring !== undefined && now - this.#configuring.at < endpointsKeptMs) {
      return this.#configuring.configuration;
    }
    const configuring = { at: now, configuration: this.#discover() };
    this.#configuring = configuring;
    configuring.configuration.catch(() => {
      if (this.#configuring === configuring) this.#configuring = undefined;
    });
    return configuring.configuration;
  }

  async #discover(): Promise<Configuration> {
    const openid = await import("openid-client");
    const { issuer, clientId, readSecret } = this.#options;
    const url = new URL(issuer);
    const authentication = readSecret === undefined ? openid.None() : openid.ClientSecretPost(readSecret());
    return openid.discovery(url, clientId, undefined, authentication, {
      timeout: providerTimeoutMs / 1000,
      // The settings allow plain HTTP only on this machine.
      execute: url.protocol === "http:" ? [openid.allowInsecureRequests] : [],
      [openid.customFetch]: fetchWhole,
    });
  }
}

function toBusy(who: string): ProviderFault {
  return { status: "unavailable", reason: `${who} wait for the provider` };
}

/** The URL with only the parameters that an answer can have, each once: a browser may add others. Undefined without a code or an error. */
function onlyKnown({ origin, pathname, searchParams }: URL): URL | undefined {
  const names = ["state", "iss", "code", "error"];
  const pairs = names
    .map((name): [string, string] => [name, searchParams.get(name) ?? ""])
    .filter(([, value]) => value !== "");
  const isAnswer = pairs.some(([name]) => name === "code" || name === "error");
  return isAnswer ? new URL(`${origin}${pathname}?${new URLSearchParams(pairs).toString()}`) : undefined;
}

/** Like `fetch`, but limits the answer's length, and the time until its last byte. */
async function fetchWhole(url: string, { body: sent, ...init }: CustomFetchOptions): Promise<Response> {
  const signal = AbortSignal.timeout(providerTimeoutMs);
  const response = await fetch(url, { ...init, ...(sent !== undefined && { body: sent }), signal });
  const body = await readBody(response, signal);
  const { status, headers } = response;
  return new Response(body.byteLength === 0 ? null : new Uint8Array(body), { status, headers });
}
