// node tail.js PATTERN [AFTER]: prints events as they come. The client reconnects after a lost connection.
import { Stele } from "@stele/client";

const { STELE_URL: url = "http://127.0.0.1:8080", STELE_KEY: key } = process.env;
const [topic = "orders/#", after = "OFFSET_FIRST"] = process.argv.slice(2);

// console.log hides that nothing reads the output any more.
process.stdout.on("error", (error) => {
  throw error;
});

const stele = new Stele({ url, ...(key !== undefined && { key }) });
for await (const event of stele.subscribe(topic, { after })) console.log(event.eventId, event.topic, event.text());
