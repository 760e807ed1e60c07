import type { Caller } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import { createHttpServer, type HttpServerOptions } from "../http-server.ts";
import { createRecordingBroker, type RecordedCall } from "./recording-broker.ts";

export const testBodyBytesMax = 200_000;

export const testMetrics: HttpServerOptions["metrics"] = {
  contentType: "text/plain; version=0.0.4",
  render: () => Promise.resolve("events 1\n"),
  connectionEnded: () => {},
  watchBytesInFlight: () => {},
};

export interface LogLine {
  readonly message: string;
  readonly fields: LogFields | undefined;
}

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly RecordedCall[];
  readonly callers: readonly Caller[];
  /** Lines at level error. */
  readonly errors: readonly LogLine[];
  /** Lines at level warn. */
  readonly warnings: readonly LogLine[];
  /** Reloads the certificate. */
  readonly reload: () => void;
  readonly close: (delayMs?: number) => Promise<void>;
}

/** Starts a server on a free port, over a recording broker with the given operations. */
export async function serve(
  operations: Partial<Broker> = {},
  options: Partial<HttpServerOptions> = {},
): Promise<Served> {
  const { broker, calls, callers } = createRecordingBroker(operations);
  const errors: LogLine[] = [];
  const warnings: LogLine[] = [];
  const logger: Logger = {
    ...silentLogger,
    error: (message, fields) => errors.push({ message, fields }),
    warn: (message, fields) => warnings.push({ message, fields }),
  };
  const server = createHttpServer({
    broker,
    logger,
    basePath: "",
    extensionPrefix: "svc-",
    bodyBytesMax: testBodyBytesMax,
    metrics: testMetrics,
    memoryInFlightBytesMax: 2 ** 26,
    version: "0.1.0",
    defaultGroup: "1",
    ...options,
  });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const close = async (delayMs?: number): Promise<void> => {
    await server.drain(delayMs);
    await server.close();
  };
  const reload = (): void => server.reload();
  return { url, calls, callers, errors, warnings, reload, close, [Symbol.asyncDispose]: () => close() };
}
