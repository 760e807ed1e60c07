import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type BrokerProcess, mainFile, startBroker } from "../../harness/broker-process.ts";
import { type Door, openDoor } from "../../harness/doors.ts";
import { HttpClient, type HttpSender } from "../../harness/http-client.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";

const run = promisify(execFile);
const all = ["open", "close", "publish", "subscribe", "read", "unsubscribe"];

const roles = {
  client: [{ actions: all, filter: "t/#" }, { actions: ["read"] }],
  elsewhere: [{ actions: all, filter: "other/#" }],
  bounded: [{ actions: all, filter: "t/#" }],
  weak: [{ actions: ["publish"], filter: "other/#" }],
};

/** A publish of more than a byte takes what is allowed for longer than any test runs. */
const quotas = { principals: { bounded: { bytesPerSecond: 1, connections: 1 } } };

/** Ways to be refused, and two to be served. */
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
] as const;
export type CredentialName = (typeof credentialNames)[number];

/** A broker with access, and a credential of each kind. */
export class AccessWorld implements AsyncDisposable {
  readonly broker: BrokerProcess;
  readonly #folder: TempFolder;
  readonly #credentials: Readonly<Record<CredentialName, string | undefined>>;
  readonly #clients: HttpClient[] = [];

  private constructor(
    broker: BrokerProcess,
    folder: TempFolder,
    credentials: Readonly<Record<CredentialName, string | undefined>>,
  ) {
    this.broker = broker;
    this.#folder = folder;
    this.#credentials = credentials;
  }

  static async start(): Promise<AccessWorld> {
    const folder = createTempFolder();
    writeFileSync(join(folder.path, "stele.json"), JSON.stringify({ access: { roles, quotas } }));
    const create = async (role: string, ...more: string[]): Promise<string> =>
      (await key(folder, "create", "--principal", role, "--role", role, ...more)).trim();
    const [client, admin, weak, elsewhere, bounded] = [
      await create("client"),
      await create("admin"),
      await create("weak"),
      await create("elsewhere"),
      await create("bounded"),
    ];
    const [expired, revoked] = [await create("client", "--expires", "1s"), await create("client")];
    await key(folder, "revoke", revoked);
    const broker = await startBroker({
      dataDir: join(folder.path, "data"),
      args: ["--config", join(folder.path, "stele.json")],
      env: { STELE_ADMIN_PORT: "0", STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0", STELE_LOG_LEVEL: "debug" },
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
    };
    return new AccessWorld(broker, folder, given);
  }

  credential(name: CredentialName): string | undefined {
    return this.#credentials[name];
  }

  /** Every secret that was given to a client. */
  get secrets(): readonly string[] {
    return Object.values(this.#credentials).flatMap((text) =>
      text?.startsWith("stele_") === true ? [text.slice(23)] : [],
    );
  }

  key(...words: readonly string[]): Promise<string> {
    return key(this.#folder, ...words);
  }

  /** A client with that credential. */
  http(name: CredentialName, base = this.broker.url): HttpSender {
    const client = new HttpClient(base);
    this.#clients.push(client);
    const credential = this.credential(name);
    const authorization: Record<string, string> =
      credential === undefined ? {} : { authorization: `Bearer ${credential}` };
    return {
      send: (request) => client.send({ ...request, headers: { ...request.headers, ...authorization } }),
      [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
    };
  }

  door(kind: string, name: CredentialName): Door {
    return openDoor(this.http(name), kind);
  }

  /** Base URL of the operators' listener. */
  get operators(): string {
    return /^ {2}Operators +(http:\S+)$/m.exec(this.broker.stderr())?.[1] ?? "";
  }

  port(protocol: "MQTT" | "STOMP"): number {
    return Number(new RegExp(`^ {2}${protocol} +\\w+:.*:(\\d+)$`, "m").exec(this.broker.stderr())?.[1]);
  }

  /** All that calls can change. */
  async snapshot(): Promise<unknown> {
    const [clients, operators] = [this.http("client"), this.http("admin", this.operators)];
    const topics = await clients.send({ method: "GET", path: "/rest/list?pageIndex=0&pageSize=50" });
    const state = await clients.send({ method: "GET", path: "/rest/state?topic=t/a" });
    const listing = await operators.send({ method: "GET", path: "/admin/listSubscription" });
    const byNode = Object.values(listing.json() as Record<string, Record<string, object>>);
    return [topics.json(), state.json(), byNode.map((node) => Object.keys(node).toSorted())];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
    await this.broker.stop();
    this.#folder[Symbol.dispose]();
  }
}

async function key(folder: TempFolder, ...words: readonly string[]): Promise<string> {
  const settings = ["--config", join(folder.path, "stele.json"), "--data-dir", join(folder.path, "data")];
  const { stdout } = await run(process.execPath, [mainFile, "key", ...words, ...settings]);
  return stdout;
}
