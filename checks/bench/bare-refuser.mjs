// The baseline for refused connections: the least that a Node.js server can do is to reset each connection without reading from it.
import { createServer } from "node:net";

const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.resetAndDestroy();
});
process.once("SIGTERM", () => process.exit(0));
server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on ${server.address().port}\n`));
