import { type AsyncApiSettings, type AsyncServer, createAsyncApi } from "@stele/wire";
import { once } from "../../lib/once.ts";
import type { UpgradeRoute } from "../shared/connection/upgrade.ts";

export interface AsyncApiPageOptions {
  readonly version: string;
  readonly basePath: string;
  readonly extensionPrefix: string;
  /** Settings that the document shows. If left out, it describes a broker that everybody may use. */
  readonly settings?: AsyncApiSettings | undefined;
  /** Protocols over WebSocket of the clients' HTTP port. */
  readonly routes: readonly Pick<UpgradeRoute, "path" | "protocol">[];
  /** Whether HTTP is served over TLS. */
  readonly isSecure: boolean;
  /** Whether the page is at a listener that does not serve clients. */
  readonly isForOperators: boolean;
  /** The active listeners; none if left out. */
  readonly listeners?: (() => readonly { readonly address: string }[]) | undefined;
}

const openSettings: AsyncApiSettings = {
  hasKeys: false,
  asksCertificates: [],
  mqttSessionExpirySecondsMax: 0,
  mqttPayload: "raw",
  hasMqttEventPlace: true,
};

/** Protocol and transport by the URL scheme of a listener's address. */
const schemes = new Map<string, Pick<AsyncServer, "kind" | "transport">>([
  ["mqtt:", { kind: "mqtt", transport: "tcp" }],
  ["mqtts:", { kind: "mqtt", transport: "tls" }],
  ["stomp:", { kind: "stomp", transport: "tcp" }],
  ["stomp+ssl:", { kind: "stomp", transport: "tls" }],
]);

const kinds = new Map<string, AsyncServer["kind"]>([
  ["MQTT", "mqtt"],
  ["STOMP", "stomp"],
]);

/**
 * The AsyncAPI document. It names every server of the broker by the `Host` of the request, not by its listening address. That address may mean nothing on other
 * machines, and is only for readers who may see the health page.
 */
export class AsyncApiPage {
  readonly #options: AsyncApiPageOptions;
  readonly #renderer: () => ReturnType<typeof createAsyncApi>;

  constructor(options: AsyncApiPageOptions) {
    this.#options = options;
    this.#renderer = once(() => createAsyncApi({ ...options, ...(options.settings ?? openSettings) }));
  }

  /** Renders the document for a request with this `Host`. */
  render(host: string | undefined): unknown {
    return this.#renderer()(this.#serversAt(host ?? "localhost"));
  }

  #serversAt(host: string): readonly AsyncServer[] {
    const { basePath, routes, isSecure } = this.#options;
    const addresses = (this.#options.listeners?.() ?? []).map(({ address }) => new URL(address));
    const name = host.replace(/:\d*$/, "");
    const http = { kind: "http", transport: "tcp", host: this.#httpHost(host, addresses), isSecure } as const;
    return [
      { ...http, pathname: basePath },
      ...addresses.flatMap(({ protocol, port }) => {
        const scheme = schemes.get(protocol);
        if (scheme === undefined) return [];
        return [{ ...scheme, host: `${name}:${port}`, pathname: "", isSecure: scheme.transport === "tls" }];
      }),
      ...routes.flatMap(({ path, protocol }) => {
        const kind = kinds.get(protocol);
        if (kind === undefined) return [];
        return [{ ...http, kind, transport: "websocket", pathname: `${basePath}${path}` } as const];
      }),
    ];
  }

  /**
   * Host and port of the clients' HTTP listener. A request to the operators' listener names another port, so the port is that of the first
   * listener, which serves clients over HTTP.
   */
  #httpHost(host: string, [first]: readonly URL[]): string {
    if (!this.#options.isForOperators || first === undefined) return host;
    return `${host.replace(/:\d*$/, "")}:${first.port === "" ? defaultPort(first) : first.port}`;
  }
}

/** The default port of a URL: for this port, `URL.port` is empty. */
function defaultPort({ protocol }: URL): string {
  return protocol === "https:" ? "443" : "80";
}
