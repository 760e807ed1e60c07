// A receiver in Node.js. The package standardwebhooks verifies signatures, and the package cloudevents reads CloudEvents; both are from npm.
// It reads orders from standard input and prints reports, both as one JSON object a line: see webhook-receiver.ts.
import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { CloudEvent, HTTP } from "cloudevents";
import { Webhook } from "standardwebhooks";

const publicKeyPrefix = "whpk_";
/** The bytes before the 32 bytes of an Ed25519 public key in SubjectPublicKeyInfo (RFC 8410, section 4). */
const publicKeyHead = Buffer.from("302a300506032b6570032100", "hex");

/** Verifies a request; undefined if the subscription has no secret. */
let verifier;

createInterface({ input: process.stdin }).on("line", (line) => {
  const { key } = JSON.parse(line);
  verifier = key === null ? undefined : createVerifier(key);
  say({ what: "ready" });
});

const server = createServer((request, response) => {
  receive(request, response).catch((error) => {
    response.writeHead(500).end();
    say({ what: "error", error: String(error) });
  });
}).listen(0, "127.0.0.1", () => say({ what: "listening", port: server.address().port }));

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function createVerifier(key) {
  if (key.startsWith(publicKeyPrefix)) return (body, headers) => verifyEd25519(key, body, headers);
  const webhook = new Webhook(key);
  return (body, headers) => webhook.verify(body, headers);
}

async function receive(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const { headers, url: path } = request;
  const signatures = (headers["webhook-signature"] ?? "").split(" ").filter((one) => one !== "");
  const seen = { what: "request", path, id: headers["webhook-id"], type: headers["content-type"], signatures };
  try {
    verifier?.(body, headers);
  } catch (error) {
    response.writeHead(401).end();
    say({ ...seen, status: 401, events: [], error: String(error) });
    return;
  }
  const { kind, events, call } = read(headers, body);
  if (call === undefined) response.writeHead(204).end();
  else {
    const answer = JSON.stringify({ jsonrpc: "2.0", id: call, result: true });
    response.writeHead(200, { "content-type": "application/json" }).end(answer);
  }
  say({ ...seen, status: response.statusCode, kind, events });
}

/** The library verifies symmetric signatures only. Standard Webhooks also defines Ed25519 signatures, with the prefix v1a. */
function verifyEd25519(key, body, { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": given }) {
  const bytes = Buffer.from(key.slice(publicKeyPrefix.length), "base64");
  const publicKey = createPublicKey({ key: Buffer.concat([publicKeyHead, bytes]), format: "der", type: "spki" });
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  const signatures = given.split(" ").filter((one) => one.startsWith("v1a,"));
  if (signatures.some((one) => verify(null, signed, publicKey, Buffer.from(one.slice(4), "base64")))) return;
  throw new Error("No matching signature found");
}

/** The kind and the events of a request, and its `id` if it is a JSON-RPC call. */
function read(headers, body) {
  const type = headers["content-type"];
  if (type.startsWith("application/cloudevents") || headers["ce-id"] !== undefined) {
    // The library expects JSON and text as a string, and other content as bytes.
    const isBinary = type === "application/octet-stream";
    const found = [HTTP.toEvent({ headers, body: isBinary ? body : body.toString() })].flat();
    const events = found.map((event) => new CloudEvent(event)); // Checks each attribute.
    if (events[0]?.type === "stele.ping") return { kind: "ping", events: [] };
    // The library leaves attributes in headers percent-encoded.
    const decode = headers["ce-id"] === undefined ? (text) => text : decodeURIComponent;
    return { kind: "cloudevents", events: events.map((event) => toEvent(event, decode)) };
  }
  const message = JSON.parse(body);
  const isCall = message.jsonrpc === "2.0";
  const { event, events = [event], ping } = isCall ? message.params : message;
  const call = isCall ? message.id : undefined;
  if (ping !== undefined || message.method === "ping") return { kind: "ping", events: [], call };
  return { kind: isCall ? message.method : "event", events: events.map(toInterfaceEvent), call };
}

function toEvent({ id, subject, data, colour }, decode) {
  return { id, topic: decode(subject), content: toBase64(data), colour: decode(colour) };
}

function toBase64(data) {
  if (typeof data === "string") return Buffer.from(data).toString("base64");
  return Buffer.from(ArrayBuffer.isView(data) ? data : JSON.stringify(data)).toString("base64");
}

function toInterfaceEvent({ eventId, topic, content, extensions }) {
  return { id: eventId, topic, content, colour: extensions["svc-colour"] };
}
