import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Authority, type CertificateFile } from "../harness/certificates.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

const folder = createTempFolder();
const listeners = ["http", "operators", "mqtt", "stomp"] as const;
type ListenerName = (typeof listeners)[number];
const [authority, stranger] = [new Authority(folder.path, "authority"), new Authority(folder.path, "stranger")];
const serverCertificate = authority.sign("server", "DNS:localhost,IP:127.0.0.1");
const certificates = {
  shop: authority.sign("shop", "URI:spiffe://acme/shop"),
  operator: authority.sign("operator", "DNS:operator.example"),
  unnamed: authority.sign("unnamed", "DNS:unnamed.example"),
  several: authority.sign("several", "DNS:operator.example,URI:spiffe://acme/shop"),
  foreign: stranger.sign("foreign", "URI:spiffe://acme/shop"),
  expired: authority.sign("expired", "URI:spiffe://acme/shop", -1),
};
let broker: BrokerProcess;

beforeAll(async () => {
  const rules = [{ actions: ["open", "publish", "read"], filter: "t/#" }];
  const access = {
    roles: { member: rules },
    certificates: [
      { name: "URI:spiffe://acme/shop", principal: "shop", roles: ["member"] },
      { name: "DNS:operator.example", principal: "operator", roles: ["admin"] },
    ],
  };
  const served = ["http", "mqtt", "stomp"].map((name) => [
    [`${name}TlsCertificateFile`, serverCertificate.certificate],
    [`${name}TlsKeyFile`, serverCertificate.key],
    [`${name}TlsClientCaFile`, authority.file],
  ]);
  const ports = { adminPort: 0, mqttPort: "off", stompPort: "off", mqttTlsPort: 0, stompTlsPort: 0 };
  const config = join(folder.path, "stele.json");
  writeFileSync(config, JSON.stringify({ access, ...ports, ...Object.fromEntries(served.flat()) }));
  broker = await startBroker({ dataDir: join(folder.path, "data"), args: ["--config", config] });
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

const lines: Readonly<Record<ListenerName, RegExp>> = {
  http: /REST +https:\/\/\S+?:(\d+)\//,
  operators: /Operators +https:\/\/\S+?:(\d+)/,
  mqtt: /MQTT TLS +mqtts:\/\/\S+?:(\d+)/,
  stomp: /STOMP TLS +\S+?:\/\/\S+?:(\d+)/,
};

/** Sends `request` with `openssl s_client`, and waits until openssl ends. Returns the broker's answer and openssl's messages. */
async function connect(
  listener: ListenerName,
  { client = certificates.shop, words = [], request = "" }: Options = {},
): Promise<{ readonly answer: string; readonly notes: string }> {
  const port = lines[listener].exec(broker.stderr())?.[1] ?? "";
  const shown = client === null ? [] : ["-cert", client.certificate, "-key", client.key];
  const args = ["s_client", "-connect", `127.0.0.1:${port}`, "-CAfile", authority.file, "-verify_return_error"];
  const child = spawn("openssl", [...args, "-quiet", ...shown, ...words]);
  let [answer, notes] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
  child.stderr.on("data", (chunk: Buffer) => (notes += chunk.toString("latin1")));
  child.stdin.on("error", () => {}); // openssl may end before it reads
  child.stdin.write(Buffer.from(request, "latin1"));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await ended;
  return { answer, notes };
}

interface Options {
  readonly client?: CertificateFile | null;
  readonly words?: readonly string[];
  readonly request?: string;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`;
/** CONNECT of MQTT 5 without a client identifier, and DISCONNECT. */
const mqttTalk = "\x10\x0d\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00\xe0\x00";
const stompTalk = "CONNECT\naccept-version:1.2\nhost:x\n\n\0DISCONNECT\nreceipt:bye\n\n\0";
const talks: Readonly<Record<ListenerName, string>> = {
  http: get("/rest/open?topic=t/a"),
  operators: get("/metrics"),
  mqtt: mqttTalk,
  stomp: stompTalk,
};
const greetings: Readonly<Record<ListenerName, string>> = {
  http: "\r\n\r\ntrue",
  operators: "stele_",
  mqtt: "\x20",
  stomp: "CONNECTED\n",
};

describe.each(listeners)("%s over TLS", (listener) => {
  const request = talks[listener];

  it.each(["-tls1_2", "-tls1_3"])(
    "the listener serves a client with a configured certificate, with %s",
    async (version) => {
      const client = listener === "operators" ? certificates.operator : certificates.shop;
      expect((await connect(listener, { client, words: [version], request })).answer).toContain(greetings[listener]);
    },
  );

  it.each([
    ["TLS 1.0", ["-tls1", "-cipher", "ALL:@SECLEVEL=0"]],
    ["TLS 1.1", ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]],
    ["a cipher without authenticated encryption", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0"]],
    ["a cipher with 64-bit tags", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-CCM8:@SECLEVEL=0"]],
    ["no encryption", ["-tls1_2", "-cipher", "eNULL:@SECLEVEL=0"]],
    ["an anonymous key exchange", ["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"]],
  ])("the listener refuses %s", async (_, words) => {
    const { answer, notes } = await connect(listener, { words, request });
    expect(notes).toMatch(/alert (protocol version|handshake failure)/);
    expect(answer).toBe("");
  });

  it.each([
    ["no certificate", null],
    ["a certificate of another authority", certificates.foreign],
    ["a certificate that has expired", certificates.expired],
  ])("the listener closes the connection of a client with %s", async (_, client) => {
    for (const words of [["-tls1_2"], ["-tls1_3"]]) {
      expect((await connect(listener, { client, words, request })).answer).toBe("");
    }
  });

  it.each(["unnamed", "several"] as const)(
    'the listener refuses the certificate "%s" with the code for a wrong credential',
    async (name) => {
      const { answer } = await connect(listener, { client: certificates[name], request });
      if (listener === "mqtt")
        expect(answer).toContain("\x00\x86"); // CONNACK, no session, Bad User Name or Password
      else expect(answer).toContain("100701");
    },
  );
});

it("a client certificate has the rights of its principal, and no more", async () => {
  expect((await connect("http", { request: get("/rest/open?topic=other") })).answer).toContain('"code":100702');
  expect((await connect("operators", { request: get("/metrics") })).answer).toContain('"code":100702');
});

it("the credential of a request counts instead of the client certificate", async () => {
  const request = get("/rest/open?topic=t/a").replace("\r\n\r\n", "\r\nauthorization: Bearer wrong\r\n\r\n");
  expect((await connect("http", { request })).answer).toContain('"code":100701');
});
