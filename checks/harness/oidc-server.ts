import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { type Configuration, Provider } from "oidc-provider";
import { findFreePort } from "./free-port.ts";

export interface OidcServerOptions {
  readonly clientId: string;
  readonly clientSecret?: string;
  readonly redirectUris: readonly string[];
}

/** The resource that clients request an access token for. */
export const resource = "https://stele.example";
const algorithm = "ES256";
const tokenSecondsDefault = 600;

/**
 * An OpenID Connect provider on a certified library. A browser treats it as another site than the tests' brokers, because its host is `localhost` and not
 * 127.0.0.1. It logs in everyone who enters a name, and puts that name into the token's claim `roles`.
 */
export class OidcServer implements AsyncDisposable {
  readonly issuer: string;
  /** Audience of the access tokens that the provider issues from now on. */
  audience = "stele";
  tokenSeconds = tokenSecondsDefault;
  /** Further claims of access tokens. */
  claims: Readonly<Record<string, unknown>> = {};
  /** Requests whose path starts with this text get no answer. */
  silent: string | undefined;
  /** If set, the provider logs in this account without a form. */
  account: string | undefined;
  readonly #provider: Provider;
  readonly #server: Server;

  private constructor(port: number, options: OidcServerOptions) {
    this.issuer = `http://localhost:${port}`;
    this.#provider = new Provider(this.issuer, this.#toConfiguration(options));
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(options: OidcServerOptions): Promise<OidcServer> {
    const port = await findFreePort();
    const server = new OidcServer(port, options);
    await server.listen();
    return server;
  }

  /** Listens again after {@link close}. */
  async listen(): Promise<void> {
    this.#server.listen(Number(new URL(this.issuer).port), "127.0.0.1");
    await once(this.#server, "listening");
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "", method } = request;
    if (this.silent !== undefined && url.startsWith(this.silent)) return;
    if (!url.startsWith("/interaction/")) return void this.#provider.callback()(request, response);
    const given = method === "POST" ? new URLSearchParams(await text(request)).get("name") : this.account;
    if (given !== null && given !== undefined) {
      await this.#provider.interactionFinished(request, response, { login: { accountId: given } });
      return;
    }
    const form = `<form method="post"><label>Name <input name="name" /></label><button>Sign in</button></form>`;
    response.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><title>Provider</title>${form}`);
  }

  #toConfiguration({ clientId, clientSecret, redirectUris }: OidcServerOptions): Configuration {
    const authentication =
      clientSecret === undefined
        ? ({ token_endpoint_auth_method: "none" } as const)
        : ({ client_secret: clientSecret, token_endpoint_auth_method: "client_secret_post" } as const);
    const client = { client_id: clientId, redirect_uris: [...redirectUris], ...authentication };
    return {
      clients: [{ ...client, grant_types: ["authorization_code"], id_token_signed_response_alg: algorithm }],
      jwks: { keys: [toPrivateJwk()] },
      cookies: { keys: [randomBytes(32).toString("hex")] },
      features: {
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: () => ({
            scope: "",
            audience: this.audience,
            accessTokenTTL: this.tokenSeconds,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: algorithm } },
          }),
        },
      },
      extraTokenClaims: (_context, token) => ({
        roles: "accountId" in token ? [token.accountId] : [],
        ...this.claims,
      }),
      findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
      // Users need not consent.
      loadExistingGrant: async ({ oidc }) => {
        const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session?.accountId ?? "" });
        grant.addOIDCScope("openid");
        grant.addResourceScope(resource, "");
        await grant.save();
        return grant;
      },
      ttl: { Session: tokenSecondsDefault, Interaction: tokenSecondsDefault, Grant: tokenSecondsDefault },
    };
  }
}

function toPrivateJwk() {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { ...privateKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: algorithm };
}
