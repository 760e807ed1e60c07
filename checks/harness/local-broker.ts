import { createLogger, loadConfig, type RunningServer, startServer } from "@stele/broker";

/** A line of the broker's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A broker in this process. It starts in a third of the time that a separate process takes. */
export interface LocalBroker extends AsyncDisposable {
  /** Base URL, base path included. */
  readonly url: string;
  /** Resolves when the broker cannot continue. The real process would then print this error's message and exit. */
  readonly failure: Promise<Error>;
  /** The port of a listener. */
  port(name: "MQTT" | "STOMP"): number;
  stop(): Promise<void>;
}

export interface LocalBrokerOptions {
  readonly dataDir: string;
  /** Receives the log, also of a start that fails. */
  readonly log: LogLine[];
  /** Settings by environment name. The defaults are a free HTTP port, no MQTT or STOMP, and a log of warnings and errors only. */
  readonly env?: Readonly<Record<string, string>>;
}

const env = { STELE_PORT: "0", STELE_MQTT_PORT: "off", STELE_STOMP_PORT: "off", STELE_LOG_LEVEL: "warn" };
const startTimeoutMs = 30_000;

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

function toLocalBroker({ url, listeners, failure, stop: end }: RunningServer): LocalBroker {
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= end());
  const port = (wanted: string): number =>
    Number(
      listeners
        .find(({ name }) => name === wanted)
        ?.address.split(":")
        .at(-1),
    );
  return { url, failure, port, stop, [Symbol.asyncDispose]: stop };
}
