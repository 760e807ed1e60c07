// PORT=9000 SECRET=whsec_… node receive.js: accepts callbacks with a valid signature.
import { createServer } from "node:http";
import { toNodeHandler } from "@stele/client/webhook";

const { PORT = "9000", SECRET: secret = "" } = process.env;

const receive = toNodeHandler({
  secret,
  // If this throws, the broker sends the event again. An event may come twice.
  onEvent: (event) => console.log(event.eventId, event.topic, event.text()),
});
createServer(receive).listen(Number(PORT), "127.0.0.1", () => console.log("listening", PORT));
