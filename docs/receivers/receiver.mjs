// A receiver for Node.js 20 or later, without packages: checks the signature of Standard Webhooks, handles each event once, in order.
// PORT=9000 SECRET=whsec_… node receiver.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { PORT = "9000", SECRET = "" } = process.env;
const key = Buffer.from(SECRET.replace(/^whsec_/, ""), "base64");
if (key.length === 0) throw new Error("SECRET is missing: everybody could sign with an empty key");
const toleranceSeconds = 300;
const bodyBytesMax = 2 ** 24; // A batch has up to 1 MiB of content, or one event that is longer.
/** A real receiver keeps these in its database, in the transaction that handles the event. */
const handled = new Set();

createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    (error) => {
      process.stderr.write(`${error}\n`);
      response.writeHead(500).end(); // The broker tries again.
    },
  );
}).listen(Number(PORT), "127.0.0.1", function () {
  process.stdout.write(`listening ${this.address().port}\n`);
});

/** The status to answer. */
async function receive(request) {
  if (request.method !== "POST") return 405;
  const body = await readBody(request);
  if (body === undefined) return 413;
  if (!isSigned(request.headers, body)) return 401;
  const { event, events = [event], ping } = JSON.parse(body.toString("utf8")); // A batch has `events`.
  if (ping !== undefined) return 204; // The broker asks whether it may call.
  for (const one of events) {
    if (!handled.has(one.eventId)) handle(one);
    handled.add(one.eventId);
  }
  return 204;
}

function handle({ eventId, topic, content }) {
  process.stdout.write(`${eventId} ${topic} ${Buffer.from(content, "base64").toString("utf8")}\n`);
}

async function readBody(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Several signatures are separated by spaces; one that fits is enough. */
function isSigned(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = headers;
  const awaySeconds = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (Number.isNaN(awaySeconds) || awaySeconds > toleranceSeconds) return false;
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ""), "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
