import { createRequire } from "node:module";
import { type AsyncApiSettings, toOpenApi } from "@stele/wire";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { serve } from "../testing/serve.ts";
import { AsyncApiPage, type AsyncApiPageOptions } from "./async-api.ts";

/** The parts of the document that these tests read. */
interface Document {
  readonly servers: Readonly<Record<string, Server>>;
  readonly channels: Readonly<Record<string, { readonly servers: readonly Reference[] }>>;
  readonly components: Readonly<Record<"schemas" | "messages" | "securitySchemes", Readonly<Record<string, unknown>>>>;
}
interface Server {
  readonly host: string;
  readonly protocol: string;
  readonly pathname?: string;
  readonly security?: readonly Reference[];
}
interface Reference {
  readonly $ref: string;
}

const settings: AsyncApiSettings = {
  hasKeys: false,
  asksCertificates: [],
  mqttSessionExpirySecondsMax: 3600,
  mqttPayload: "raw",
  hasMqttEventPlace: true,
};
const addresses = ["https://10.0.0.7:8443", "mqtt://[::]:1883", "mqtts://10.0.0.7:8883", "stomp+ssl://0.0.0.0:61614"];
const routes = [
  { path: "/mqtt", protocol: "MQTT" },
  { path: "/stomp", protocol: "STOMP" },
] as const;
const all: AsyncApiPageOptions = {
  version: "0.1.0",
  basePath: "/events",
  extensionPrefix: "acme-",
  settings,
  routes,
  isSecure: true,
  isForOperators: false,
  listeners: () => addresses.map((address) => ({ address })),
};

function render(options: Partial<AsyncApiPageOptions> = {}, host = "broker.example:8443"): Document {
  return JSON.parse(JSON.stringify(new AsyncApiPage({ ...all, ...options }).render(host))) as Document; // Validated below.
}

// The schema of the AsyncAPI project (Apache-2.0). It holds the meta-schema of JSON Schema itself.
const ajv = new Ajv({ strict: false, meta: false, validateSchema: false });
formats.default(ajv);
const require = createRequire(import.meta.url);
const official = require("@asyncapi/specs/schemas/3.0.0.json") as object; // JSON Schema of an object.
const validate = ajv.compile(official);

const withKeys = { ...settings, hasKeys: true };
const variants: readonly (readonly [string, Partial<AsyncApiPageOptions>])[] = [
  ["of every protocol", {}],
  ["without listeners", { listeners: undefined, routes: [], settings: undefined }],
  ["with keys and certificates", { settings: { ...withKeys, asksCertificates: ["http", "mqtt", "stomp"] } }],
  ["with events as MQTT payload", { settings: { ...settings, mqttPayload: "event" } }],
  ["without the place of events", { settings: { ...settings, hasMqttEventPlace: false } }],
  ["for operators", { isForOperators: true }],
];

const headersOf = (answer: Response | undefined) =>
  [...(answer?.headers ?? [])].filter(([name]) => !["content-length", "date"].includes(name));

describe("the AsyncAPI document", () => {
  it.each(variants)("%s matches the schema of AsyncAPI 3.0.0", (_name, options) => {
    expect(validate(render(options)), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ ...render(options), operations: { notify: {} } })).toBe(false);
  });

  it.each(variants)("%s has only references that resolve", (_name, options) => {
    const document = render(options);
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = ""]) => path);
    expect(references.length).toBeGreaterThan(0);
    for (const path of references) expect(document).toHaveProperty(path.split("/"));
  });

  it("describes events, notifications and pings as the OpenAPI document does", () => {
    const { components } = toOpenApi({ version: "0.1.0", basePath: "", extensionPrefix: "acme-" });
    const { schemas } = render().components;
    const shared = Object.keys(components.schemas).filter((name) => name in schemas);
    expect(shared.toSorted()).toEqual(
      [
        "CloudEvent",
        "CloudEventBatch",
        "CloudEventPing",
        "Event",
        "Notification",
        "NotificationBatch",
        "Ping",
      ].toSorted(),
    );
    for (const name of shared) expect(schemas[name]).toEqual(components.schemas[name]);
  });

  it("lists each server with the host of the request and the listening port", () => {
    const { servers } = render();
    const places = Object.entries(servers).map(([name, { protocol, host, pathname = "" }]) => [
      name,
      `${protocol} ${host}${pathname}`,
    ]);
    expect(Object.fromEntries(places)).toEqual({
      http: "https broker.example:8443/events",
      mqtt: "mqtt broker.example:1883",
      mqttTls: "secure-mqtt broker.example:8883",
      stompTls: "stomps broker.example:61614",
      mqttWebSocket: "wss broker.example:8443/events/mqtt",
      stompWebSocket: "wss broker.example:8443/events/stomp",
      receiver: "http {receiver}",
    });
    expect(JSON.stringify(servers)).not.toContain("10.0.0.7");
    expect(render({}, "[::1]:8443").servers["mqtt"]?.host).toBe("[::1]:1883");
    expect(render({ isForOperators: true }, "broker.example:8081").servers["http"]?.host).toBe("broker.example:8443");
  });

  it("leaves out protocols without a listener or route", () => {
    const { channels } = render({ listeners: undefined, routes: [] });
    expect(Object.keys(channels)).toEqual(["restCallback", "rpcCallback", "cloudEventCallback", "tail"]);
  });

  it("names no credential if the broker asks for none", () => {
    const { servers, components } = render();
    expect(Object.values(servers).map(({ security }) => security)).toEqual(Object.values(servers).map(() => undefined));
    expect(components.securitySchemes).toEqual({});
  });

  it("names the credentials that each listener accepts", () => {
    const { servers, components } = render({ settings: { ...withKeys, asksCertificates: ["http", "mqtt"] } });
    const taken = Object.entries(servers).map(([name, { security = [] }]) => [
      name,
      security.map(({ $ref }) => $ref.replace("#/components/securitySchemes/", "")),
    ]);
    expect(Object.fromEntries(taken)).toEqual({
      http: ["bearer", "certificate"],
      mqtt: ["mqttPassword"],
      mqttTls: ["mqttPassword", "certificate"],
      stompTls: ["stompPasscode"],
      mqttWebSocket: ["mqttPassword", "certificate"],
      stompWebSocket: ["stompPasscode", "certificate"],
      receiver: [],
    });
    expect(Object.keys(components.securitySchemes)).toHaveLength(4);
  });

  it("is served with the same headers as the OpenAPI document", async () => {
    await using server = await serve({}, { basePath: "events" });
    const [open, async] = await Promise.all(["openapi", "asyncapi"].map((name) => fetch(`${server.url}/${name}.json`)));
    const document = (await async?.json()) as Document;
    expect(document.servers["http"]).toMatchObject({ host: new URL(server.url).host, pathname: "/events" });
    expect(headersOf(async)).toEqual(headersOf(open));
  });
});
