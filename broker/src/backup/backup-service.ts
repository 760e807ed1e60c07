import type { Logger } from "../lib/logger.ts";
import { pause, type Timer } from "../lib/pause.ts";
import { ReportedTrouble } from "../lib/reported-trouble.ts";
import { formatManifest, type Manifest } from "./manifest.ts";
import { type BackupRequest, RequestFiles } from "./request-files.ts";

/** Time between two polls for a request file, in milliseconds. */
const pollMs = 500;
/** Time between two signs of life during a backup, in milliseconds. */
const renewMs = 10_000;

export interface BackupServiceOptions {
  /** The data folder. */
  readonly folder: string;
  readonly clock: Timer;
  readonly logger: Logger;
  readonly makeBackup: (target: string, signal: AbortSignal) => Promise<Manifest>;
}

/** Makes the backups that `stele backup` asks a running broker for, one after another. */
export class BackupService {
  readonly #options: BackupServiceOptions;
  readonly #files: RequestFiles;
  readonly #stopping = new AbortController();
  readonly #trouble: ReportedTrouble;
  #running: Promise<void> = Promise.resolve();

  constructor(options: BackupServiceOptions) {
    this.#options = options;
    this.#files = new RequestFiles(options.folder);
    this.#trouble = new ReportedTrouble(
      options.logger,
      "backup requests cannot be read",
      "backup requests can be read again",
    );
  }

  start(): void {
    this.#files.clear();
    this.#running = this.#run(this.#stopping.signal);
  }

  /** Aborts a backup in progress and removes its files. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the broker was stopped"));
    await this.#running;
  }

  /** Never rejects. */
  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const request = this.#take();
      if (request === undefined) await pause(this.#options.clock, pollMs, signal);
      else await this.#serve(request, signal);
    }
  }

  #take(): BackupRequest | undefined {
    try {
      const request = this.#files.take();
      this.#trouble.done();
      return request;
    } catch (error) {
      this.#trouble.failed(error);
      return undefined;
    }
  }

  async #serve({ id, target }: BackupRequest, signal: AbortSignal): Promise<void> {
    const { logger, makeBackup } = this.#options;
    const ended = new AbortController();
    try {
      this.#files.answer(id, { status: "running", pid: process.pid });
      void this.#renew(id, ended.signal);
      logger.info("backup started", { target });
      const manifest = await makeBackup(target, signal);
      logger.info("backup made", { target, bytes: manifest.files.reduce((sum, { bytes }) => sum + bytes, 0) });
      this.#files.answer(id, { status: "done", manifest: formatManifest(manifest) });
    } catch (error) {
      logger.error("backup failed", { target, error });
      this.#refuse(id, error);
    } finally {
      ended.abort();
    }
  }

  /** Gives signs of life to the command until `ended` aborts. Never rejects. */
  async #renew(id: string, ended: AbortSignal): Promise<void> {
    for (;;) {
      await pause(this.#options.clock, renewMs, ended);
      if (ended.aborted) return;
      try {
        this.#files.renew(id);
      } catch {
        // The command was ended, or cannot get an answer either.
      }
    }
  }

  #refuse(id: string, error: unknown): void {
    try {
      this.#files.answer(id, { status: "failed", reason: error instanceof Error ? error.message : String(error) });
    } catch {
      this.#withdrawAnswer(id);
    }
  }

  /** Removes the answer that the backup runs. Without an answer, the command ends by itself after some seconds. The log has the reason. */
  #withdrawAnswer(id: string): void {
    try {
      this.#files.forget(id);
    } catch {
      // The folder cannot be changed. The command waits until this broker ends.
    }
  }
}
