// Idle MQTT connections: node mqtt-idle.mjs PORT COUNT; says when they are open, and holds them until it is ended.
import { connectAll } from "./mqtt-connections.mjs";

const [port, count] = process.argv.slice(2).map(Number);
await connectAll(count, port);
process.once("SIGTERM", () => process.exit(0));
process.stdout.write(`${count} connections are open\n`);
