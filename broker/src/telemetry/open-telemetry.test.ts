import { trace, type Tracer } from "@opentelemetry/api";
import { afterEach, expect, it } from "vitest";
import { silentLogger } from "../lib/logger.ts";
import type { Tracing } from "../ports/tracing.ts";
import { findTracing } from "./open-telemetry.ts";

afterEach(() => trace.disable());

/** Registers an SDK that makes spans by `startSpan`. */
async function startWith(startSpan: () => unknown): Promise<Tracing> {
  const tracer = { startSpan } as unknown as Tracer; // The broker uses no more of it.
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
  const tracing = await findTracing({ version: "1", logger: silentLogger });
  if (tracing === undefined) throw new Error("the SDK was not found");
  return tracing;
}

function fail(): never {
  throw new Error("a sampler or a processor of the host failed");
}

const start = { name: "publish a", kind: "server", traceParents: [], attributes: {} } as const;

it.each([
  ["make a span", fail],
  ["say whether it records a span", () => ({ isRecording: fail, setAttributes: () => {}, end: () => {} })],
  ["end a span", () => ({ isRecording: () => false, setAttributes: fail, end: fail })],
])("throws nothing if the SDK fails to %s", async (_, startSpan) => {
  const tracing = await startWith(startSpan);
  const span = tracing.start(start);
  expect(span.traceParent).toBeUndefined();
  expect(() => span.end({ error: { type: "internal" } })).not.toThrow();
});
