// The load generator for publishing, run as a separate process: node publish-load.mjs '<Plan as JSON>'; prints its findings as JSON.
import { percentile } from "../lib/statistics.mjs";
import { topicsOf } from "../lib/topics.mjs";
import { Connection } from "./connection.mjs";
import { NatsConnection } from "./nats-connection.mjs";
import { StompConnection } from "./stomp-connection.mjs";
import { contentOf, jsonRpcPublishes, jsonRpcPublishesOver, restPublish } from "./request.mjs";

/**
 * @typedef {object} Plan
 * @property {number} port
 * @property {string} topic
 * @property {number} connections
 * @property {number} warmUpMs not counted
 * @property {number} measureMs
 * @property {number} [events] ends after this many events instead of after a time
 * @property {number} [eventsPerRequest] if more than 1, publishes in JSON-RPC batches of this size
 * @property {number} [topics] spreads the events of JSON-RPC batches over this many topics, instead of sending all to `topic`
 * @property {"nats" | "stomp"} [protocol] publishes to JetStream, or over STOMP; over HTTP if left out
 * @property {string} [destination] for STOMP
 * @property {string} [credential] sent with every REST request
 * @property {number} [pauseMs] time between an answer and the next request of an HTTP connection; 0 if left out
 * @property {boolean} [isGreedy] sends the next request at once after a refusal, instead of counting a failure
 */

/** Publishes over many connections, with one request at a time on each, and counts the answers. */
class Load {
  #plan;
  #eventsPerRequest;
  #latencies = [];
  #failures = 0;
  #refusals = 0;
  #sent = 0;
  #startedAt = 0;
  #cpuBefore = process.cpuUsage();
  #findings;
  #isCounting = false;
  #isOver = false;
  #open;
  #spread;
  #ended = createDeferred();

  /** @param {Plan} plan */
  constructor(plan) {
    this.#plan = plan;
    this.#eventsPerRequest = plan.eventsPerRequest ?? 1;
    this.#open = plan.connections;
    if (plan.topics !== undefined) this.#spread = this.#spreadRequests(plan.topics);
  }

  /** Enough requests to reach every topic, and at least one for each connection, so that no two events in flight have the same content. */
  #spreadRequests(count) {
    const batches = Math.max(this.#plan.connections, Math.ceil(count / this.#eventsPerRequest));
    const target = { port: this.#plan.port, topics: topicsOf(count) };
    return jsonRpcPublishesOver(target, batches, this.#eventsPerRequest);
  }

  async run() {
    for (let index = 0; index < this.#plan.connections; index += 1) this.#connect(index);
    if (this.#plan.events === undefined) {
      setTimeout(() => this.#begin(), this.#plan.warmUpMs);
      setTimeout(() => this.#end(), this.#plan.warmUpMs + this.#plan.measureMs);
    } else this.#begin();
    await this.#ended.promise;
    return this.#findings;
  }

  #connect(index) {
    this.#sent += this.#eventsPerRequest;
    this.#createConnection(index, (...answer) => this.#take(...answer)).open(this.#plan.port);
  }

  #createConnection(index, onAnswer) {
    const content = contentOf(index);
    const { protocol, destination } = this.#plan;
    if (protocol === "nats") return new NatsConnection(content, onAnswer);
    if (protocol === "stomp") return new StompConnection({ destination, content }, onAnswer);
    const eventsPerRequest = this.#eventsPerRequest;
    // Each connection begins with a different request, so that together they publish to many topics at once.
    const requests = this.#spread ?? [this.#request(index)];
    return new Connection({ requests, first: index, eventsPerRequest, pauseMs: this.#plan.pauseMs }, onAnswer);
  }

  #request(index) {
    const count = this.#eventsPerRequest;
    return count === 1 ? restPublish(this.#plan, index) : jsonRpcPublishes(this.#plan, index, count);
  }

  #begin() {
    this.#startedAt = performance.now();
    this.#cpuBefore = process.cpuUsage();
    this.#isCounting = true;
  }

  #end() {
    const elapsedMs = performance.now() - this.#startedAt;
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    const sorted = this.#latencies.toSorted((left, right) => left - right);
    this.#findings = {
      eventsPerSecond: (sorted.length * this.#eventsPerRequest * 1000) / elapsedMs,
      events: sorted.length * this.#eventsPerRequest,
      elapsedMs,
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      maxMs: sorted.at(-1),
      clientCpuShare: (user + system) / 1000 / elapsedMs,
    };
    this.#isOver = true;
  }

  /** Counts one answer; returns whether to send another request. */
  #take(latencyMs, isSuccess, isOpen) {
    if (!isSuccess && isOpen && this.#plan.isGreedy) this.#refusals += 1;
    else if (!isSuccess) this.#failures += 1;
    else if (this.#isCounting && !this.#isOver) this.#latencies.push(latencyMs);
    const shouldContinue = isSuccess || (isOpen && this.#plan.isGreedy === true);
    const isMore = shouldContinue && !this.#isOver && this.#sent < (this.#plan.events ?? Number.POSITIVE_INFINITY);
    if (isMore) this.#sent += this.#eventsPerRequest;
    else this.#leave();
    return isMore;
  }

  #leave() {
    this.#open -= 1;
    if (this.#open > 0) return;
    if (!this.#isOver) this.#end();
    this.#findings = { ...this.#findings, eventsTotal: this.#sent, failures: this.#failures, refusals: this.#refusals };
    this.#ended.resolve();
  }
}

function createDeferred() {
  const deferred = {};
  deferred.promise = new Promise((resolve) => Object.assign(deferred, { resolve }));
  return deferred;
}

const findings = await new Load(JSON.parse(process.argv[2])).run();
process.stdout.write(JSON.stringify(findings));
