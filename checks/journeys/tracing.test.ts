import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { HttpClient } from "../harness/http-client.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const preload = new URL("tracing/tracing.mjs", import.meta.url);
const logLine = "spans go to the OpenTelemetry SDK";

/** A span in OTLP's JSON encoding. */
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, string | number>> }[];
  readonly links: readonly { readonly traceId: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

/** Receives spans like an OpenTelemetry collector. */
class Collector implements AsyncDisposable {
  readonly spans: OtlpSpan[] = [];
  readonly #server = createServer((request, response) => void this.#take(request, response));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`; // It listens on TCP.
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { resourceSpans } = (await json(request)) as { resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[] }; // As OTLP specifies.
    this.spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));
    response.setHeader("content-type", "application/json").end("{}");
  }

  /** The spans of a trace, and the spans that link to it. */
  of(traceId: string): readonly OtlpSpan[] {
    return this.spans.filter((span) => span.traceId === traceId || span.links.some((link) => link.traceId === traceId));
  }

  async until(traceId: string, count: number): Promise<readonly OtlpSpan[]> {
    await until(`the collector has ${count} spans of the trace`, () => this.of(traceId).length >= count, {
      timeoutMs: 30_000,
    });
    return this.of(traceId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const folder = createTempFolder();
const collector = new Collector();
let broker: BrokerProcess;
let receiver: Receiver;
beforeAll(async () => {
  const endpoint = await collector.start();
  const env = { NODE_OPTIONS: `--import=${preload.href}`, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };
  const quick = { STELE_CALLBACK_BACKOFF_MIN_MS: "10", STELE_CALLBACK_BACKOFF_MAX_MS: "20" };
  broker = await startBroker({ dataDir: folder.path, env: { ...env, ...quick } });
  receiver = await startReceiver();
  await fetch(`${broker.url}/rest/open?topic=traced`);
});
afterAll(async () => {
  await broker.stop();
  await receiver[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const parentId = "b7ad6b7169203331";
const flagsOf = (isSampled: boolean): string => (isSampled ? "01" : "00");

interface Publication {
  readonly number: number;
  readonly topic?: string;
  readonly isSampled?: boolean;
}

/** Publishes an event in a new trace. */
async function publish({ number, topic = "traced", isSampled = true }: Publication) {
  const traceId = `0af7651916cd43dd8448eb211c8031${number}`;
  await using http = new HttpClient(broker.url);
  const answer = await http.send({
    method: "POST",
    path: "/rest/publish",
    headers: { "content-type": "application/json", traceparent: `00-${traceId}-${parentId}-${flagsOf(isSampled)}` },
    body: JSON.stringify({ topic, content: "very private", extensions: { "svc-note": "very private too" } }),
  });
  return { traceId, answer: answer.json() as { eventId: string } }; // As docs/rest.md describes.
}

async function subscribe(topic: string, parameters = ""): Promise<string> {
  const url = encodeURIComponent(`${receiver.url}/private-path?token=private-token`);
  const query = `topic=${topic}&url=${url}&secret=whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0${parameters}`;
  return (await (await fetch(`${broker.url}/rest/subscribe?${query}`)).json()) as string; // As docs/rest.md describes.
}

function attributesOf({ attributes }: OtlpSpan): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value["stringValue"] ?? Number(value["intValue"] ?? value["doubleValue"]),
    ]),
  );
}

const named = (spans: readonly OtlpSpan[], name: string): readonly OtlpSpan[] =>
  spans.filter((span) => span.name === name);

it("one trace covers an event's publish, commit and each attempt to deliver it, and contains nothing private", async () => {
  const id = await subscribe("traced");
  receiver.setBehaviour((attempt, response) => {
    attempt.isAccepted = receiver.attempts.length > 1;
    response.writeHead(attempt.isAccepted ? 200 : 503).end();
  });
  const { traceId, answer } = await publish({ number: 11 });
  const spans = await collector.until(traceId, 4);
  expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([1, 2, 3, 4].map(() => parentId));
  const message = { "messaging.system": "stele", "messaging.destination.name": "traced" };
  const event = { ...message, "messaging.message.id": answer.eventId };
  const [published] = named(spans, "publish traced");
  expect(published && attributesOf(published)).toEqual({
    ...event,
    "messaging.operation.name": "publish",
    "messaging.operation.type": "send",
    "messaging.message.body.size": 12,
  });
  const [committed] = named(spans, "commit traced");
  expect(committed && attributesOf(committed)).toMatchObject({ ...event, "stele.group": "1" });
  const [failed, accepted] = named(spans, "deliver traced");
  const port = Number(new URL(receiver.url).port);
  const attempt = {
    ...event,
    "messaging.operation.name": "deliver",
    "messaging.destination.subscription.name": id,
    "http.request.method": "POST",
    "url.scheme": "http",
    "server.address": "127.0.0.1",
    "server.port": port,
  };
  const unavailable = { "http.response.status_code": 503, "error.type": "503" };
  expect(failed && attributesOf(failed)).toEqual({ ...attempt, ...unavailable });
  expect(failed?.status).toEqual({ code: 2, message: "answered 503" });
  expect(accepted && attributesOf(accepted)).toEqual({ ...attempt, "http.response.status_code": 200 });
  expect(accepted?.status.code ?? 0).toBe(0);
  const called = receiver.attempts.map(({ headers }) => headers["traceparent"]);
  expect(called).toEqual([failed, accepted].map((span) => `00-${traceId}-${span?.spanId}-01`));
  expect(JSON.stringify(spans)).not.toMatch(/private|secret|whsec/i);
  await fetch(`${broker.url}/rest/unSubscribe?subscriptionId=${id}`);
});

it("the span of a refused publish has the error code, and a trace that is not sampled exports no span", async () => {
  const unsampled = await publish({ number: 20, isSampled: false });
  const { traceId } = await publish({ number: 21, topic: "no/such" });
  const [refused] = await collector.until(traceId, 1);
  expect(refused).toMatchObject({ name: "publish no/such", status: { code: 2 } });
  expect(refused && attributesOf(refused)).toMatchObject({ "error.type": "100101" });
  expect(collector.of(unsampled.traceId)).toEqual([]);
});

it("the span of an attempt to deliver a batch has a trace of its own, and links to the traces of its events", async () => {
  await fetch(`${broker.url}/rest/open?topic=batched`);
  const id = await subscribe("batched", "&batch=2&batchMs=10000");
  receiver.setBehaviour((attempt, response) => {
    attempt.isAccepted = true;
    response.end();
  });
  const one = await publish({ number: 31, topic: "batched" });
  const two = await publish({ number: 32, topic: "batched" });
  const spans = await collector.until(two.traceId, 3);
  const [delivered] = named(spans, "deliver batched");
  expect([one.traceId, two.traceId]).not.toContain(delivered?.traceId);
  expect(delivered?.links.map(({ traceId }) => traceId)).toEqual([one.traceId, two.traceId]);
  expect(delivered && attributesOf(delivered)).toMatchObject({
    "messaging.batch.message_count": 2,
    "http.response.status_code": 200,
    "messaging.destination.subscription.name": id,
  });
});

it("the broker logs that it found the SDK, and docs/monitoring.md has the module that the test preloads", () => {
  expect(broker.stdout()).toContain(logLine);
  const page = readFileSync(new URL("../../docs/monitoring.md", import.meta.url), "utf8");
  expect(page).toContain(readFileSync(fileURLToPath(preload), "utf8"));
});
