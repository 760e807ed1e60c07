// The MQTT server Aedes, for comparison: node aedes-server.mjs FOLDER. The package is in FOLDER/node_modules, because the project does not depend on it.
import { once } from "node:events";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";

const { Aedes } = createRequire(join(process.argv[2], "package.json"))("aedes");
const aedes = await Aedes.createBroker();
const server = createServer({ noDelay: true }, aedes.handle).listen(0, "127.0.0.1");
await once(server, "listening");
process.once("SIGTERM", () => process.exit(0));
process.stdout.write(`listening on ${server.address().port}\n`);
