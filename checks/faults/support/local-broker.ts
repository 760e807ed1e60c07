import { createLogger, loadConfig, type RunningServer, startServer } from "@stele/broker";

/** A line of the broker's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A broker in this process. It starts in a third of the time that a separate process takes. */
export interface LocalBroker extends AsyncDisposable {
  readonly url: string;
  readonly mqttPort: number;
  /** Resolves when the broker cannot continue. The real process would then print this error's message and exit. */
  readonly failure: Promise<Error>;
  stop(): Promise<void>;
}

export interface LocalBrokerOptions {
  readonly dataDir: string;
  /** Receives the log, also of a start that fails. */
  readonly log: LogLine[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A few blocks change this many bytes, so the broker soon writes their changes to the tables of the chain's state and of its log index. */
export const unsavedBytesMax = 4_096;
const startTimeoutMs = 30_000;
const env = {
  STELE_PORT: "0",
  STELE_MQTT_PORT: "0",
  STELE_STOMP_PORT: "off",
  STELE_LOG_LEVEL: "warn",
  STELE_CALLBACK_BACKOFF_MAX_MS: "1000",
  STELE_CHAIN_UNSAVED_BYTES_MAX: String(unsavedBytesMax),
};

/** The start neither succeeded nor failed in time. */
export class StartHangs extends Error {}

/** Starts a broker on the folder. @throws the error of a start that fails; StartHangs if the start does not end in time. */
export async function startLocalBroker({ dataDir, log, env: own }: LocalBrokerOptions): Promise<LocalBroker> {
  const outcome = loadConfig({
    env: { ...env, ...own, STELE_DATA_DIR: dataDir },
    argv: [],
    readFile: () => "",
    version: "checks",
  });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  const destination = { write: (line: string) => void log.push(JSON.parse(line) as LogLine) }; // Each log line is a JSON object.
  const logger = createLogger({ level: outcome.config.logLevel, format: "json", destination });
  const starting = startServer(outcome.config, { logger, secrets: outcome.secrets });
  const server = await withinTime(starting);
  return toLocalBroker(server);
}

async function withinTime(starting: Promise<RunningServer>): Promise<RunningServer> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new StartHangs(`the start neither succeeded nor failed within ${startTimeoutMs} ms`)),
      startTimeoutMs,
    );
  });
  try {
    return await Promise.race([starting, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function toLocalBroker(server: RunningServer): LocalBroker {
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= server.stop());
  const mqtt = server.listeners.find(({ name }) => name === "MQTT");
  const mqttPort = Number(/:(\d+)$/.exec(mqtt?.address ?? "")?.[1]);
  return { url: server.url, mqttPort, failure: server.failure, stop, [Symbol.asyncDispose]: stop };
}
