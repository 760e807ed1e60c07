// A receiver of callbacks, run as a separate process. It answers 204, and checks for each path that event sequences arrive in order.
// It answers each IPC message with its counts so far. The message `sequences` also gets the last sequence of each path;
// `forget` resets all counts first.
import { createServer } from "node:net";

const answer = "HTTP/1.1 204 No Content\r\n\r\n";
const lastSequences = new Map();
let received = 0;
let repeats = 0;
let disorders = 0;

/** Counts the events of one request, which has a single event or a batch of events. */
function take(path, body) {
  const found = [...body.matchAll(/"eventId":"[0-9a-f]{8}-(\d+)-/g)];
  if (found.length === 0) throw new Error(`A notification without an eventId: ${body}`);
  for (const [, sequence] of found) takeEvent(path, Number(sequence));
}

function takeEvent(path, next) {
  const last = lastSequences.get(path);
  if (last !== undefined && next <= last) repeats += 1;
  else {
    if (last !== undefined && next !== last + 1) disorders += 1;
    lastSequences.set(path, next);
    received += 1;
  }
}

/** Handles the complete requests at the start of `text`, and returns the rest. */
function takeRequests(text, socket) {
  let start = 0;
  for (;;) {
    const headEnd = text.indexOf("\r\n\r\n", start);
    if (headEnd === -1) break;
    const head = text.slice(start, headEnd);
    const bodyStart = headEnd + 4;
    const bodyEnd = bodyStart + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (text.length < bodyEnd) break;
    take(head.slice(0, head.indexOf("\r\n")), text.slice(bodyStart, bodyEnd));
    socket.write(answer);
    start = bodyEnd;
  }
  return text.slice(start);
}

const server = createServer({ noDelay: true }, (socket) => {
  let pending = "";
  socket.setEncoding("latin1");
  socket.on("data", (chunk) => {
    pending = takeRequests(pending + chunk, socket);
  });
  socket.on("error", () => socket.destroy());
});

function forget() {
  lastSequences.clear();
  received = 0;
  repeats = 0;
  disorders = 0;
}

process.on("message", (message) => {
  if (message === "forget") forget();
  const sequences = message === "sequences" ? [...lastSequences] : [];
  process.send({ received, repeats, disorders, paths: lastSequences.size, sequences });
});
process.once("SIGTERM", () => process.exit(0));
server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on ${server.address().port}\n`));
