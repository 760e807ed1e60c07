// Publishes one small event after another and reads each back, in its own thread, so that the load of the attackers on the test's event loop does not
// count as a delay of the broker.
import { parentPort, workerData } from "node:worker_threads";
import { request } from "undici";

const waitsMs = [];
const stopping = new AbortController();
parentPort.once("message", () => stopping.abort());

async function timed(call) {
  const began = performance.now();
  const { body } = await request(`${workerData.url}/rest/${call}`);
  const text = await body.text();
  waitsMs.push(performance.now() - began);
  const { eventId } = JSON.parse(text);
  if (!eventId) throw new Error(`an honest call was answered ${text}`);
  return eventId;
}

while (!stopping.signal.aborted) {
  const eventId = await timed(`publish?topic=${workerData.topic}&content=small`);
  await timed(`getEvent?eventId=${eventId}`);
}
parentPort.postMessage(waitsMs, []);
