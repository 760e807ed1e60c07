// One STOMP connection publishes, many receive. Run as a separate process: node stomp-fan-out.mjs '<Plan as JSON>'; prints its findings as JSON.
import { percentile } from "../lib/statistics.mjs";
import { contentOf } from "./request.mjs";
import { FrameSocket, toFrame } from "./stomp-frames.mjs";

/**
 * @typedef {object} Plan
 * @property {number} port
 * @property {string} destination
 * @property {number} connections that receive
 * @property {number} inFlightMax events that may be in flight at once
 * @property {number} warmUpMs not counted
 * @property {number} measureMs
 */

/** Keeps `inFlightMax` events in flight. An event is in flight until its RECEIPT has come and every connection has received it. */
class FanOut {
  #plan;
  #send;
  #publisher;
  #sentAt = [];
  /** For each event, the number of frames (its RECEIPT and its MESSAGEs) that have not come yet. */
  #missing = [];
  #receipts = 0;
  #latencies = [];
  #startedAt = 0;
  #findings;
  #cpuBefore;
  #isCounting = false;
  #isOver = false;
  #open = 0;
  #resolve;
  #reject;
  #ended = new Promise((resolve, reject) => {
    this.#resolve = resolve;
    this.#reject = reject;
  });

  /** @param {Plan} plan */
  constructor(plan) {
    this.#plan = plan;
    const content = contentOf(0);
    const { destination } = plan;
    this.#send = toFrame("SEND", { destination, receipt: "sent", "content-length": content.length }, content);
  }

  async run() {
    for (let index = 0; index < this.#plan.connections; index += 1) this.#subscribe();
    return this.#ended;
  }

  /** Opens a receiving connection. Events arrive in the order of publishing, so a count tells which event a MESSAGE carries. */
  #subscribe() {
    let received = 0;
    const socket = new FrameSocket((letter) => {
      if (letter === "R") this.#subscribed();
      else if (letter === "M") this.#received(received++);
      else this.#fail(`a subscriber got a frame that begins with ${letter}`);
    });
    const { port, destination } = this.#plan;
    const subscribe = toFrame("SUBSCRIBE", { id: "0", destination, ack: "auto", receipt: "subscribed" });
    socket.open(port, { onConnected: () => socket.write(subscribe), onEnded: () => this.#fail("a subscriber ended") });
  }

  #subscribed() {
    this.#open += 1;
    if (this.#open < this.#plan.connections) return;
    this.#publisher = new FrameSocket((letter) => this.#answered(letter));
    this.#publisher.open(this.#plan.port, {
      onConnected: () => this.#begin(),
      onEnded: () => this.#fail("the publisher ended"),
    });
  }

  #begin() {
    const { warmUpMs, measureMs, inFlightMax } = this.#plan;
    for (let index = 0; index < inFlightMax; index += 1) this.#publish();
    setTimeout(() => this.#count(), warmUpMs);
    setTimeout(() => this.#stopCounting(), warmUpMs + measureMs);
  }

  #publish() {
    this.#sentAt.push(performance.now());
    this.#missing.push(this.#plan.connections + 1);
    this.#publisher.write(this.#send);
  }

  #answered(letter) {
    if (letter === "R") this.#done(this.#receipts++);
    else this.#fail(`the publisher got a frame that begins with ${letter}`);
  }

  #received(event) {
    if (this.#isCounting) this.#latencies.push(performance.now() - this.#sentAt[event]);
    this.#done(event);
  }

  #done(event) {
    this.#missing[event] -= 1;
    if (this.#missing[event] > 0) return;
    if (!this.#isOver) this.#publish();
    else if (this.#missing.every((missing) => missing === 0)) this.#end();
  }

  #count() {
    this.#isCounting = true;
    this.#startedAt = performance.now();
    this.#cpuBefore = process.cpuUsage();
  }

  #stopCounting() {
    const elapsedMs = performance.now() - this.#startedAt;
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    const sorted = Float64Array.from(this.#latencies).toSorted();
    this.#isCounting = false;
    this.#isOver = true;
    this.#findings = {
      eventsPerSecond: (sorted.length * 1000) / elapsedMs,
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      clientCpuShare: (user + system) / 1000 / elapsedMs,
    };
  }

  /** Called when every frame has arrived. */
  #end() {
    this.#resolve({ ...this.#findings, eventsTotal: this.#missing.length * this.#plan.connections });
  }

  #fail(why) {
    this.#reject(new Error(why));
  }
}

const findings = await new FanOut(JSON.parse(process.argv[2])).run();
process.stdout.write(JSON.stringify(findings), () => process.exit());
