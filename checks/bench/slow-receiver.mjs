// A receiver of callbacks, run as a separate process: node slow-receiver.mjs LATENCY_MS. It answers 204 after that many milliseconds. It answers each
// IPC message with the number of accepted events; the message `forget` sets the number to 0 first.
import { createServer } from "node:http";

const latencyMs = Number(process.argv[2]);
let accepted = 0;

const server = createServer((request, response) => {
  let events = 0;
  request.setEncoding("latin1");
  request.on("data", (chunk) => {
    events += chunk.split('"eventId"').length - 1;
  });
  request.on("end", () => {
    setTimeout(() => {
      accepted += events;
      response.writeHead(204).end();
    }, latencyMs);
  });
});

process.on("message", (message) => {
  if (message === "forget") accepted = 0;
  process.send({ accepted });
});
process.once("SIGTERM", () => process.exit(0));
server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on ${server.address().port}\n`));
