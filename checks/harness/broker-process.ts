import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The bundle that `npm start` runs. CHECKS_BROKER_MAIN can name a build that is broken on purpose, to see that the tests fail. */
export const mainFile =
  process.env["CHECKS_BROKER_MAIN"] ?? fileURLToPath(new URL("../../broker/dist/bundle/stele.js", import.meta.url));

/**
 * vitest.config.ts sets this flag, so that V8 optimises later: a broker that starts and answers a few calls then takes a tenth less processor time. The tests of
 * the project `alone` measure the broker. They run without the flag, so that their brokers start as users start them.
 */
const nodeFlags = process.execArgv.filter((flag) => flag.startsWith("--interrupt-budget="));

export interface BrokerOptions {
  readonly dataDir: string;
  /** Settings by environment name. The defaults are a free HTTP port, and no MQTT or STOMP. */
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** A shell script that ends with `"$@"`, the broker's command line. It can set a limit or change the user first. */
  readonly shell?: string;
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The exit of a broker process, and everything that it printed. */
export interface EndedRun extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** The real broker in a process of its own, ready to serve. */
export interface BrokerProcess extends AsyncDisposable {
  /** Base URL, base path included. */
  readonly url: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** Output so far: stderr has the banner and the last error, stdout the log. */
  stderr(): string;
  stdout(): string;
  /** Sends SIGTERM; resolves with the exit once the process is gone. */
  stop(): Promise<Exit>;
  /** Sends SIGKILL; resolves with the exit once the process is gone. */
  kill(): Promise<Exit>;
  signal(name: NodeJS.Signals): void;
}

const readyLine = /^ {2}REST +(https?:\S+)\/rest\/<operation>$/m;
const startTimeoutMs = 60_000;
const running = new Set<ChildProcess>();
// An interrupted test run leaves no broker behind.
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a broker and waits for its banner. @throws Error with the broker's stderr if it ends first, or prints no banner in time. */
export async function startBroker(options: BrokerOptions): Promise<BrokerProcess> {
  const run = new Run(options);
  const ready = run.waitForOutput(readyLine);
  const first = await Promise.race([ready, run.ended]);
  if (!Array.isArray(first)) {
    throw new Error(`the broker ended with ${JSON.stringify(first.code ?? first.signal)}:\n${first.stderr}`);
  }
  return toBrokerProcess(run, first[1] ?? "");
}

/** Starts a broker that should end by itself, and returns its exit. */
export function runBroker(options: Partial<BrokerOptions>): Promise<EndedRun> {
  return new Run(options).ended;
}

/** Starts a broker and kills it after a delay, possibly before it is ready. */
export function startAndKill(options: BrokerOptions, delayMs: number): Promise<EndedRun> {
  const run = new Run(options);
  const timer = setTimeout(() => run.child.kill("SIGKILL"), delayMs);
  return run.ended.finally(() => clearTimeout(timer));
}

/** Starts a broker and sends it a signal when its output matches `when`, possibly before it is ready. */
export async function startAndSignal(
  options: BrokerOptions,
  { name, when }: { readonly name: NodeJS.Signals; readonly when: RegExp },
): Promise<EndedRun> {
  const run = new Run(options);
  await Promise.race([run.waitForOutput(when), run.ended]);
  run.child.kill(name);
  return run.ended;
}

function toBrokerProcess(run: Run, url: string): BrokerProcess {
  const end = (signal: NodeJS.Signals): Promise<Exit> => {
    run.child.kill(signal);
    return run.ended;
  };
  return {
    url,
    pid: run.child.pid ?? -1,
    exited: run.ended,
    stderr: () => run.stderr,
    stdout: () => run.stdout,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
    signal: (name) => void run.child.kill(name),
    [Symbol.asyncDispose]: async () => void (await end("SIGKILL")),
  };
}

class Run {
  readonly child: ChildProcess;
  readonly ended: Promise<EndedRun>;
  stdout = "";
  stderr = "";

  constructor({ dataDir, env = {}, args = [], shell }: Partial<BrokerOptions>) {
    const command = [process.execPath, ...nodeFlags, mainFile, ...args];
    const [file = "", ...rest] = shell === undefined ? command : ["sh", "-c", shell, "sh", ...command];
    // Brokers of parallel tests must not compete for the default ports of MQTT and STOMP.
    const ports = { STELE_PORT: "0", STELE_MQTT_PORT: "off", STELE_STOMP_PORT: "off" };
    const settings = { ...ports, ...(dataDir === undefined ? {} : { STELE_DATA_DIR: dataDir }), ...env };
    this.child = spawn(file, rest, { env: { ...outsideEnv(), ...settings }, stdio: ["ignore", "pipe", "pipe"] });
    running.add(this.child);
    this.child.stdout?.on("data", (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.ended = new Promise((resolve) => {
      this.child.once("close", (code, signal) => {
        running.delete(this.child);
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  waitForOutput(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`the broker did not print ${pattern} within ${startTimeoutMs} ms:\n${this.stderr}`));
        this.child.kill("SIGKILL");
      }, startTimeoutMs);
      const streams = [this.child.stderr, this.child.stdout];
      const look = (): void => {
        const match = pattern.exec(this.stderr) ?? pattern.exec(this.stdout);
        if (match === null) return;
        clearTimeout(timer);
        for (const stream of streams) stream?.off("data", look);
        resolve(match);
      };
      for (const stream of streams) stream?.on("data", look);
      this.child.once("close", () => clearTimeout(timer));
    });
  }
}

function outsideEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(STELE_|NODE_OPTIONS|VITEST)/.test(name)),
  );
}
