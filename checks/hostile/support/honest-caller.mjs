// Publishes one small event after another and reads each back. Runs in its own thread: the attackers load the test's event loop, and that must not count
// as a delay of the broker. `waitMs` of a call is at most the processor time that the broker used meanwhile: the rest is other load on the machine.
import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { request } from "undici";

/** Unit of processor time in /proc: a hundredth of a second on Linux. */
const tickMs = 10;
const calls = [];
const stopping = new AbortController();
parentPort.once("message", () => stopping.abort());

/** Processor time that all threads of the broker have used, in milliseconds. */
function workedMs() {
  const fields = readFileSync(`/proc/${workerData.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

async function timed(call) {
  const began = performance.now();
  const workedBefore = workedMs();
  const { body } = await request(`${workerData.url}/rest/${call}`);
  const text = await body.text();
  const wallMs = performance.now() - began;
  calls.push({ wallMs, waitMs: Math.min(wallMs, workedMs() - workedBefore) });
  const { eventId } = JSON.parse(text);
  if (!eventId) throw new Error(`an honest call was answered ${text}`);
  return eventId;
}

while (!stopping.signal.aborted) {
  const eventId = await timed(`publish?topic=${workerData.topic}&content=small`);
  await timed(`getEvent?eventId=${eventId}`);
}
parentPort.postMessage(calls, []);
