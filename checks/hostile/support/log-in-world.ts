import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { findFreePort } from "../../harness/free-port.ts";
import { OidcServer, resource } from "../../harness/oidc-server.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";

const clientId = "stele-console";
const clientSecret = "a secret of the client";

export const roles = {
  clerk: [{ actions: ["open", "publish", "subscribe", "read"], filter: "#" }],
  looker: [{ actions: ["read", "subscribe"], filter: "#" }],
};

interface LogInWorldContext {
  readonly provider: OidcServer;
  readonly staff: OidcServer;
  readonly broker: BrokerProcess;
  readonly operatorsUrl: string;
  readonly folder: TempFolder;
}

/** A broker with a console that users log in to through real OpenID providers. */
export class LogInWorld implements AsyncDisposable {
  /** Provider of the tenant acme. Its log-in is called `acme`. */
  readonly provider: OidcServer;
  /** Provider of the operators. Its log-in is called `staff`. */
  readonly staff: OidcServer;
  readonly broker: BrokerProcess;
  /** Base URL of the operators' listener. */
  readonly operatorsUrl: string;
  readonly #folder: TempFolder;

  private constructor({ provider, staff, broker, operatorsUrl, folder }: LogInWorldContext) {
    this.provider = provider;
    this.staff = staff;
    this.broker = broker;
    this.operatorsUrl = operatorsUrl;
    this.#folder = folder;
  }

  /** Starts both providers and the broker. Also configures a log-in `globex`, whose provider does not exist. */
  static async start({ basePath = "" }: { readonly basePath?: string } = {}): Promise<LogInWorld> {
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const origins = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`];
    const startProvider = (name: string): Promise<OidcServer> => {
      const redirectUris = origins.map((origin) => `${origin}${basePath}/console/callback/${name}`);
      return OidcServer.start({ clientId, clientSecret, redirectUris });
    };
    const [provider, staff] = [await startProvider("acme"), await startProvider("staff")];
    const folder = createTempFolder();
    const clientSecretFile = join(folder.path, "client.secret");
    writeFileSync(clientSecretFile, `${clientSecret}\n`, { mode: 0o600 });
    const client = { clientId, clientSecretFile, parameters: { resource } };
    const [first = "", second = ""] = origins;
    const tokens = [
      {
        ...toIssuer(provider),
        tenant: "acme",
        roles: Object.fromEntries(Object.keys(roles).map((role) => [role, [role]])) as unknown,
        logIn: { ...client, name: "acme", origins: [first] },
      },
      { ...toIssuer(staff), roles: { operator: ["admin"] }, logIn: { ...client, name: "staff", origins: [second] } },
      {
        issuer: "https://globex.invalid",
        audience: "stele",
        keys: join(folder.path, "none.pem"),
        tenant: "globex",
        logIn: { name: "globex", clientId, origins: [first, "https://events.example.org"] },
      },
    ];
    const config = join(folder.path, "stele.json");
    writeFileSync(config, JSON.stringify({ adminPort, basePath, access: { roles, tokens } }));
    const broker = await startBroker({
      dataDir: join(folder.path, "data"),
      args: ["--config", config],
      env: { STELE_PORT: String(port), STELE_ALLOWED_HOSTS: "events.example.org" },
    });
    return new LogInWorld({ provider, staff, broker, operatorsUrl: `${second}${basePath}`, folder });
  }

  /** URL of the console, without a slash at its end. */
  get consoleUrl(): string {
    return `${this.broker.url}/console`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.broker[Symbol.asyncDispose]();
    await this.provider[Symbol.asyncDispose]();
    await this.staff[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}

function toIssuer({ issuer }: OidcServer) {
  return { issuer, audience: "stele", keys: `${issuer}/jwks` };
}
