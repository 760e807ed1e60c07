// node publish.js TOPIC CONTENT: opens a topic and publishes an event.
import { Stele } from "@stele/client";

const { STELE_URL: url = "http://127.0.0.1:8080", STELE_KEY: key } = process.env;
const [topic = "orders/new", content = '{"order":1}'] = process.argv.slice(2);

const stele = new Stele({ url, ...(key !== undefined && { key }) });
await stele.open(topic);
// With `once`, a retry after a lost connection does not publish the event twice.
const { eventId } = await stele.publish(topic, content, { once: true });
console.log(eventId);
