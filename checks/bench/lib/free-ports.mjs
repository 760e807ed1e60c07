import { once } from "node:events";
import { createServer } from "node:net";

/** Finds `count` free ports. Listens on all of them at the same time, so that they differ. */
export async function findFreePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
