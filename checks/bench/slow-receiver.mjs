// A receiver of callbacks, in a process of its own, that answers 204 after the time that its argument says. An IPC message is answered with the number of
// events that were accepted; `forget` sets it to 0.
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
