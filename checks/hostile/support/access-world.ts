import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { changeAccess } from "../../harness/broker-command.ts";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { type Api, apiOver } from "../../harness/apis.ts";
import { HttpClient, type HttpSender } from "../../harness/http-client.ts";
import { takeLoopbackAddress } from "../../harness/loopback-address.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { toKeySet, TokenIssuer, toPart } from "./token-issuer.ts";

const all = ["open", "close", "publish", "subscribe", "read", "unsubscribe"];

const roles = {
  client: [{ actions: all, filter: "t/#" }, { actions: ["read"] }],
  elsewhere: [{ actions: all, filter: "other/#" }],
  bounded: [{ actions: all, filter: "t/#" }],
  weak: [{ actions: ["publish"], filter: "other/#" }],
  publisher: [{ actions: ["publish"], filter: "t/#" }],
  limited: [{ actions: all, filter: "${tenant}/#" }],
};

/** The quota of `bounded` is one byte a second, so one publish uses it up for longer than any test runs. */
const quotas = {
  principals: { bounded: { bytesPerSecond: 1, connections: 1 } },
  tenants: { limited: { topics: 1, subscriptions: 1, sessions: 1 } },
};

/** Names of the credentials: API keys, and tokens of an issuer. Keys and tokens named `weak` or `elsewhere` have rights for other topics only. */
export const credentialNames = [
  "none",
  "wrong",
  "forged",
  "expired",
  "revoked",
  "weak",
  "elsewhere",
  "client",
  "admin",
  "bounded",
  "limited",
  "publisher",
  "token forged",
  "token expired",
  "token of a removed key",
  "token of another audience",
  "token with the public key as a secret",
  "token without a signature",
  "token weak",
  "token elsewhere",
  "token client",
  "token admin",
] as const;
export type CredentialName = (typeof credentialNames)[number];

const issuerName = "https://issuer.example";
/** Settings for the issuer's tokens. */
const tokens = {
  issuer: issuerName,
  audience: "stele",
  algorithms: ["ES256"],
  rolesClaim: "groups",
  roles: { client: ["client"], weak: ["weak"], elsewhere: ["elsewhere"], operators: ["admin"] },
};

export interface AccessWorldOptions {
  /** Whether each client has its own address, so that the broker delays no client for the wrong credentials of another. */
  readonly hasClientsApart?: boolean;
}

interface AccessWorldContext {
  readonly hasClientsApart: boolean;
  readonly broker: BrokerProcess;
  readonly folder: TempFolder;
  readonly credentials: Readonly<Record<CredentialName, string | undefined>>;
  readonly issuer: TokenIssuer;
}

/** A broker with access, and a credential of each kind. */
export class AccessWorld implements AsyncDisposable {
  readonly broker: BrokerProcess;
  readonly #folder: TempFolder;
  readonly #credentials: Readonly<Record<CredentialName, string | undefined>>;
  readonly #clients: HttpClient[] = [];
  readonly #issuer: TokenIssuer;
  readonly #hasClientsApart: boolean;

  private constructor({ broker, folder, credentials, issuer, hasClientsApart }: AccessWorldContext) {
    this.broker = broker;
    this.#folder = folder;
    this.#credentials = credentials;
    this.#issuer = issuer;
    this.#hasClientsApart = hasClientsApart;
  }

  static async start({ hasClientsApart = false }: AccessWorldOptions = {}): Promise<AccessWorld> {
    const folder = createTempFolder();
    const keys = join(folder.path, "keys.json");
    const [issuer, removed] = [new TokenIssuer(issuerName), new TokenIssuer(issuerName, "removed")];
    const access = { roles, quotas, tokens: [{ ...tokens, keys }] };
    writeFileSync(join(folder.path, "stele.json"), JSON.stringify({ access }));
    writeFileSync(keys, toKeySet(issuer, removed));
    const create = async (role: string, ...more: string[]): Promise<string> =>
      (await key(folder, "create", "--principal", role, "--role", role, ...more)).trim();
    const [client, admin, weak, elsewhere, bounded, limited, publisher] = [
      await create("client"),
      await create("admin"),
      await create("weak"),
      await create("elsewhere"),
      await create("bounded"),
      await create("limited", "--tenant", "limited"),
      await create("publisher"),
    ];
    const [expired, revoked] = [await create("client", "--expires", "1s"), await create("client")];
    await key(folder, "revoke", revoked);
    const broker = await startBroker({
      dataDir: join(folder.path, "data"),
      args: ["--config", join(folder.path, "stele.json")],
      env: {
        STELE_ADMIN_PORT: "0",
        STELE_MQTT_PORT: "0",
        STELE_STOMP_PORT: "0",
        STELE_LOG_LEVEL: "debug",
        STELE_AUDIT_LOG: auditLogOf(folder),
      },
    });
    const forged = `${client.slice(0, -4)}AAAA`;
    const given = {
      none: undefined,
      wrong: "secret",
      forged,
      expired,
      revoked,
      weak,
      elsewhere,
      client,
      admin,
      bounded,
      limited,
      publisher,
    };
    const credentials = { ...given, ...createTokens(issuer, removed) };
    const world = new AccessWorld({ broker, folder, credentials, issuer, hasClientsApart });
    await world.#waitForAnswer("token of a removed key", "sequenceNumber");
    world.publishKeys(issuer);
    await world.#waitForAnswer("token of a removed key", "100701");
    return world;
  }

  /** Publishes only the keys of these issuers. */
  publishKeys(...issuers: readonly TokenIssuer[]): void {
    writeFileSync(join(this.#folder.path, "keys.json"), toKeySet(...issuers));
  }

  /** Publishes one more key of the issuer, which the broker reads soon. Returns an issuer of the same name that signs with this key. */
  addIssuerKey(kid: string): TokenIssuer {
    const added = new TokenIssuer(issuerName, kid);
    this.publishKeys(this.#issuer, added);
    return added;
  }

  /** Publishes only the issuer's first key again. */
  removeIssuerKeys(): void {
    this.publishKeys(this.#issuer);
  }

  /** A token of the client that expires after `seconds`. */
  signFor(seconds: number, issuer = this.#issuer): string {
    return issuer.sign({ sub: "client", groups: ["client"], exp: Math.floor(Date.now() / 1000) + seconds });
  }

  /** A token of another principal with the client's role. */
  signAs(principal: string): string {
    return this.#issuer.sign({ sub: principal, groups: ["client"], exp: Math.floor(Date.now() / 1000) + 60 });
  }

  /** Waits until a call with the credential gets an answer that contains `part`. */
  async #waitForAnswer(name: CredentialName, part: string): Promise<void> {
    await this.api("REST GET", "client").call("open", { topic: "t/a" });
    const ask = { method: "GET", path: "/rest/state?topic=t/a" } as const;
    await until(part, async () => (await this.http(name).send(ask)).text.includes(part));
  }

  credential(name: CredentialName): string | undefined {
    return this.#credentials[name];
  }

  /** The secret part of every key, and the signature of every token. */
  get secrets(): readonly string[] {
    return Object.values(this.#credentials).flatMap((text) =>
      text?.startsWith("stele_") === true
        ? [text.slice(23)]
        : (text
            ?.split(".")
            .slice(2)
            .filter((part) => part !== "") ?? []),
    );
  }

  /** Runs `stele key`. */
  key(...words: readonly string[]): Promise<string> {
    return key(this.#folder, ...words);
  }

  /** Runs `stele role`. */
  role(...words: readonly string[]): Promise<string> {
    return command(this.#folder, "role", ...words);
  }

  /** The audit log so far. */
  auditLog(): string {
    return readFileSync(auditLogOf(this.#folder), "utf8");
  }

  /** Local address for the next client; undefined if the system chooses. */
  takeAddress(): string | undefined {
    return this.#hasClientsApart ? takeLoopbackAddress() : undefined;
  }

  /** A client with that credential. */
  http(name: CredentialName, base = this.broker.url): HttpSender {
    const client = new HttpClient(base, { localAddress: this.takeAddress() });
    this.#clients.push(client);
    const credential = this.credential(name);
    const authorization: Record<string, string> =
      credential === undefined ? {} : { authorization: `Bearer ${credential}` };
    return {
      send: (request) => client.send({ ...request, headers: { ...request.headers, ...authorization } }),
      [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
    };
  }

  api(kind: string, name: CredentialName): Api {
    return apiOver(this.http(name), kind);
  }

  /** Base URL of the operators' listener. */
  get operators(): string {
    return /^ {2}Operators +(http:\S+)$/m.exec(this.broker.stderr())?.[1] ?? "";
  }

  port(protocol: "MQTT" | "STOMP"): number {
    return Number(new RegExp(`^ {2}${protocol} +\\w+:.*:(\\d+)$`, "m").exec(this.broker.stderr())?.[1]);
  }

  /** Everything that a call could change. */
  async snapshot(): Promise<unknown> {
    const [clients, operators] = [this.http("client"), this.http("admin", this.operators)];
    const topics = await clients.send({ method: "GET", path: "/rest/list?pageIndex=0&pageSize=50" });
    const state = await clients.send({ method: "GET", path: "/rest/state?topic=t/a" });
    const listing = await operators.send({ method: "GET", path: "/admin/listSubscription" });
    const byNode = Object.values(listing.json() as Record<string, Record<string, object>>);
    const roles = await operators.send({ method: "GET", path: "/admin/v1/roles" });
    return [topics.json(), state.json(), byNode.map((node) => Object.keys(node).toSorted()), roles.json()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
    await this.broker.stop();
    this.#folder[Symbol.dispose]();
  }
}

function auditLogOf(folder: TempFolder): string {
  return join(folder.path, "audit.log");
}

function key(folder: TempFolder, ...words: readonly string[]): Promise<string> {
  return command(folder, "key", ...words);
}

function command(folder: TempFolder, name: "key" | "role", ...words: readonly string[]): Promise<string> {
  const files = ["--data-dir", join(folder.path, "data"), "--audit-log", auditLogOf(folder)];
  const settings = ["--config", join(folder.path, "stele.json"), ...files];
  return changeAccess(name, [...words, ...settings]);
}

/** Creates a token of each kind. All but the expired one expire in an hour. */
function createTokens(issuer: TokenIssuer, removed: TokenIssuer) {
  const exp = Math.floor(Date.now() / 1000) + 3_600;
  const client = { sub: "client", groups: ["client"], exp };
  const good = issuer.sign(client);
  const [head = "", claims = "", signature = ""] = good.split(".");
  const hmacHead = toPart({ alg: "HS256", kid: issuer.kid });
  const hmac = createHmac("sha256", JSON.stringify(issuer.jwk)).update(`${hmacHead}.${claims}`).digest("base64url");
  const widened = toPart({ iss: issuer.name, aud: "stele", sub: "client", groups: ["operators"], exp });
  const unsigned = toPart({ alg: "none" });
  return {
    "token forged": `${head}.${widened}.${signature}`,
    "token expired": issuer.sign({ ...client, exp: exp - 7_200 }),
    "token of a removed key": removed.sign(client),
    "token of another audience": issuer.sign({ ...client, aud: "other" }),
    "token with the public key as a secret": `${hmacHead}.${claims}.${hmac}`,
    "token without a signature": `${unsigned}.${claims}.`,
    "token weak": issuer.sign({ sub: "weak", groups: ["weak"], exp }),
    "token elsewhere": issuer.sign({ sub: "elsewhere", groups: ["elsewhere"], exp }),
    "token client": good,
    "token admin": issuer.sign({ sub: "operator", groups: ["operators"], exp }),
  };
}
