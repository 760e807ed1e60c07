// A receiver of callbacks, in a process of its own: answers 204, and checks that each path gets the sequences of its events in order.
// Each IPC message is answered with what was received so far; `sequences` asks for the last one of each path too.
import { createServer } from "node:net";

const answer = "HTTP/1.1 204 No Content\r\n\r\n";
const lastSequences = new Map();
let received = 0;
let repeats = 0;
let disorders = 0;

function take(path, body) {
  const [, sequence] = /"eventId":"[0-9a-f]{8}-(\d+)-/.exec(body) ?? [];
  if (sequence === undefined) throw new Error(`A notification without an eventId: ${body}`);
  const last = lastSequences.get(path);
  const next = Number(sequence);
  if (last !== undefined && next <= last) repeats += 1;
  else {
    if (last !== undefined && next !== last + 1) disorders += 1;
    lastSequences.set(path, next);
    received += 1;
  }
}

/** Takes the whole requests at the beginning of `text`; answers what is left. */
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

process.on("message", (message) => {
  const sequences = message === "sequences" ? [...lastSequences] : [];
  process.send({ received, repeats, disorders, paths: lastSequences.size, sequences });
});
process.once("SIGTERM", () => process.exit(0));
server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on ${server.address().port}\n`));
