import { onTestFinished } from "vitest";
import { createSystemClock } from "../../../lib/system/clock.ts";
import type { AttemptOutcome, Notification, Sink } from "../../../ports/sink.ts";
import { noMetrics } from "../../../ports/metrics.ts";
import { DnsResolver } from "../lookup/dns-resolver.ts";
import { createWebhookSink, type WebhookSinkOptions } from "../webhook-sink.ts";
import { notificationTo } from "./notification.ts";

export const unaborted: AbortSignal = new AbortController().signal;

/** A sink that may call loopback; it stops when the test ends. */
export function makeSink(options: Partial<WebhookSinkOptions> = {}): Sink {
  const names = new DnsResolver({ clock: createSystemClock(), metrics: noMetrics, servers: [] });
  const sink = createWebhookSink({
    clock: createSystemClock(),
    allowNetworks: [],
    allowLoopback: true,
    timeoutMs: 10_000,
    connectionsMax: 64,
    connectionsTotalMax: 1000,
    bytesPerSecondMax: 2 ** 30,
    metrics: noMetrics,
    resolver: (hostname) => names.resolve(hostname),
    consent: { mode: "off", trusted: [], origin: "broker.example" },
    cloudEvents: { extensionPrefix: "svc-", type: "stele.event" },
    version: "1.2.3",
    ...options,
  });
  onTestFinished(() => sink.stop(0));
  return sink;
}

/** One attempt at `url`. */
export async function attemptAt(
  url: string,
  options: Partial<WebhookSinkOptions> & Partial<Notification["subscription"]> = {},
): Promise<AttemptOutcome> {
  const { format = "RESTful", secret, ...sinkOptions } = options;
  return await makeSink(sinkOptions).attempt(notificationTo({ url, format, secret }), unaborted);
}
