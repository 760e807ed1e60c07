import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { Peer as MqttPeer } from "../../conformance/mqtt/peer.ts";
import { Peer as StompPeer } from "../../conformance/stomp/peer.ts";
import { changeAccess } from "../../harness/broker-command.ts";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { type Api, apiOver } from "../../harness/apis.ts";
import { HttpClient, type HttpRequest } from "../../harness/http-client.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";

/** The tenants. The clients of both do the same. */
export const tenantNames = ["acme", "globex"] as const;
export type TenantName = (typeof tenantNames)[number];
/** A tenant's client, or an operator without a tenant. */
type Name = TenantName | "operator";

const actions = ["open", "close", "publish", "subscribe", "read", "unsubscribe", "admin"];
/** Every right: the broker must keep tenants apart even if no rule does. */
const roles = { all: [{ actions }] };

export const mqttVersions = [4, 5] as const;
export type MqttVersion = (typeof mqttVersions)[number];

/** A broker with two tenants that have every right, also to administer. */
export class TenantWorld implements AsyncDisposable {
  readonly #broker: BrokerProcess;
  readonly #folder: TempFolder;
  readonly #keys: Readonly<Record<Name, string>>;
  readonly #clients: AsyncDisposable[] = [];
  readonly #peers: { drop(): void }[] = [];

  private constructor(broker: BrokerProcess, folder: TempFolder, keys: Readonly<Record<Name, string>>) {
    this.#broker = broker;
    this.#folder = folder;
    this.#keys = keys;
  }

  static async start(): Promise<TenantWorld> {
    const folder = createTempFolder();
    const config = join(folder.path, "stele.json");
    const dataDir = join(folder.path, "data");
    writeFileSync(config, JSON.stringify({ access: { roles } }));
    const create = async (...words: readonly string[]): Promise<string> => {
      const args = ["create", "--principal", "shop", ...words, "--config", config, "--data-dir", dataDir];
      return changeAccess("key", args);
    };
    const keys = {
      acme: await create("--role", "all", "--tenant", "acme"),
      globex: await create("--role", "all", "--tenant", "globex"),
      operator: await create("--role", "admin"),
    };
    const env = { STELE_ADMIN_PORT: "0", STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0" };
    return new TenantWorld(await startBroker({ dataDir, args: ["--config", config], env }), folder, keys);
  }

  api(kind: string, name: Name): Api {
    return apiOver(this.#http(name, this.#broker.url), kind);
  }

  /** Sends a request to the clients' listener, and returns the text of the answer. */
  async send(name: Name, request: HttpRequest): Promise<string> {
    return (await this.#http(name, this.#broker.url).send(request)).text;
  }

  /** Opens a tail, and returns its lines. */
  async tail(name: TenantName, query: string): Promise<AsyncIterable<string>> {
    const headers = { authorization: `Bearer ${this.#keys[name]}`, accept: "application/x-ndjson" };
    const { status, body } = await fetch(`${this.#broker.url}/tail?${query}`, { headers });
    if (status !== 200 || body === null) throw new Error(`the tail is answered with status ${status}`);
    return createInterface({ input: Readable.fromWeb(body) })[Symbol.asyncIterator]();
  }

  /** The text of a page at the operators' listener. */
  async page(name: Name, path: string): Promise<string> {
    const base = /^ {2}Operators +(http:\S+)$/m.exec(this.#broker.stderr())?.[1] ?? "";
    return (await this.#http(name, base).send({ method: "GET", path })).text;
  }

  async mqtt(name: TenantName, version: MqttVersion, packet: object): Promise<MqttPeer> {
    const addresses = { tcp: this.#port("MQTT"), websocket: "" };
    const peer = await MqttPeer.open(addresses, { transport: "tcp", version });
    this.#peers.push(peer);
    const login = { username: "any", password: Buffer.from(this.#keys[name]) };
    peer.send({ cmd: "connect", clean: true, keepalive: 0, ...login, ...packet });
    await peer.next("connack");
    return peer;
  }

  async stomp(name: TenantName): Promise<StompPeer> {
    const addresses = { tcp: this.#port("STOMP"), websocket: "" };
    const peer = await StompPeer.open(addresses, { transport: "tcp", version: "1.2", cut: "frames" });
    this.#peers.push(peer);
    peer.send("CONNECT", { "accept-version": "1.2", host: "x", login: "any", passcode: this.#keys[name] });
    await peer.any();
    return peer;
  }

  #http(name: Name, base: string) {
    const client = new HttpClient(base);
    this.#clients.push(client);
    const authorization = { authorization: `Bearer ${this.#keys[name]}` };
    return {
      send: (request: Parameters<HttpClient["send"]>[0]) =>
        client.send({ ...request, headers: { ...request.headers, ...authorization } }),
      [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
    };
  }

  #port(protocol: "MQTT" | "STOMP"): number {
    return Number(new RegExp(`^ {2}${protocol} +\\w+:.*:(\\d+)$`, "m").exec(this.#broker.stderr())?.[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const peer of this.#peers) peer.drop();
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
    await this.#broker.stop();
    this.#folder[Symbol.dispose]();
  }
}
