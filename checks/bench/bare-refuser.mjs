// The least that a server in Node does with a connection that it refuses, in a process of its own: resets it, unread.
import { createServer } from "node:net";

const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.resetAndDestroy();
});
process.once("SIGTERM", () => process.exit(0));
server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on ${server.address().port}\n`));
