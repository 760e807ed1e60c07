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

/** A broker whose console people log in to by a real provider. */
export class LogInWorld implements AsyncDisposable {
  readonly provider: OidcServer;
  readonly broker: BrokerProcess;
  readonly #folder: TempFolder;

  private constructor(provider: OidcServer, broker: BrokerProcess, folder: TempFolder) {
    this.provider = provider;
    this.broker = broker;
    this.#folder = folder;
  }

  /** Beside the log-in `acme` there is `globex`, by whose provider nobody can log in. */
  static async start({ basePath = "" }: { readonly basePath?: string } = {}): Promise<LogInWorld> {
    const port = await findFreePort();
    const origin = `http://127.0.0.1:${port}`;
    const redirectUris = [`${origin}${basePath}/console/callback/acme`];
    const provider = await OidcServer.start({ clientId, clientSecret, redirectUris });
    const folder = createTempFolder();
    const clientSecretFile = join(folder.path, "client.secret");
    writeFileSync(clientSecretFile, `${clientSecret}\n`, { mode: 0o600 });
    const own = Object.keys(roles).map((role) => [role, [role]]);
    const acme = {
      issuer: provider.issuer,
      audience: "stele",
      keys: `${provider.issuer}/jwks`,
      tenant: "acme",
      roles: Object.fromEntries(own) as unknown,
      logIn: { name: "acme", clientId, clientSecretFile, parameters: { resource }, origins: [origin] },
    };
    const globex = {
      issuer: "https://globex.invalid",
      audience: "stele",
      keys: join(folder.path, "none.pem"),
      tenant: "globex",
      logIn: { name: "globex", clientId, origins: [origin, "https://events.example.org"] },
    };
    const config = join(folder.path, "stele.json");
    writeFileSync(config, JSON.stringify({ port, basePath, access: { roles, tokens: [acme, globex] } }));
    const broker = await startBroker({
      dataDir: join(folder.path, "data"),
      args: ["--config", config],
      env: { STELE_PORT: String(port), STELE_ALLOWED_HOSTS: "events.example.org" },
    });
    return new LogInWorld(provider, broker, folder);
  }

  /** Of the console, without a slash at its end. */
  get consoleUrl(): string {
    return `${this.broker.url}/console`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.broker[Symbol.asyncDispose]();
    await this.provider[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}
