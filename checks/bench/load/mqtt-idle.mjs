// Idle MQTT connections: node mqtt-idle.mjs PORT COUNT. Prints a line when they are open, and keeps them open until SIGTERM.
import { connectAll } from "./mqtt-connections.mjs";

const [port, count] = process.argv.slice(2).map(Number);
await connectAll(count, port);
process.once("SIGTERM", () => process.exit(0));
process.stdout.write(`${count} connections are open\n`);
