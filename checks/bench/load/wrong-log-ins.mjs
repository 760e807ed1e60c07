// A client that tries wrong credentials, run as a separate process: node wrong-log-ins.mjs '<Plan as JSON>'; prints its findings as JSON.
import { connect } from "node:net";

/**
 * @typedef {object} Plan
 * @property {number} port
 * @property {string} from local address of the connections
 * @property {number} perSecond attempts a second
 * @property {number} measureMs
 */

/** Longest time that an attempt waits for its answer. */
const answerTimeoutMs = 1_500;
const tickMs = 5;

// Most attempts end with a reset. Recording the error's stack would cost the attacker a sixth of its time.
Error.stackTraceLimit = 0;

/** Makes a new connection for each attempt, because the broker closes connections of an address that tries too often. */
class WrongLogIns {
  #plan;
  #request;
  #attempts = 0;
  #ended = 0;

  /** @param {Plan} plan */
  constructor(plan) {
    this.#plan = plan;
    const credential = `stele_${"0".repeat(16)}_${"A".repeat(43)}`;
    this.#request = `GET /rest/exist?topic=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${credential}\r\n\r\n`;
  }

  async run() {
    const { measureMs, perSecond } = this.#plan;
    const startedAt = performance.now();
    for (let elapsed = 0; elapsed < measureMs; elapsed = performance.now() - startedAt) {
      const due = Math.floor((elapsed / 1000) * perSecond);
      for (; this.#attempts < due; this.#attempts += 1) this.#try();
      await new Promise((resolve) => setTimeout(resolve, tickMs));
    }
    return { eventsTotal: this.#attempts, ended: this.#ended, perSecond: this.#ended / (measureMs / 1000) };
  }

  #try() {
    const socket = connect({ host: "127.0.0.1", port: this.#plan.port, localAddress: this.#plan.from });
    socket.setTimeout(answerTimeoutMs, () => socket.destroy());
    socket.on("error", () => {});
    socket.once("close", () => {
      this.#ended += 1;
    });
    socket.once("data", () => socket.destroy());
    socket.end(this.#request);
  }
}

const findings = await new WrongLogIns(JSON.parse(process.argv[2])).run();
process.stdout.write(JSON.stringify(findings), () => process.exit(0));
