import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { giveToFolderOwner } from "../lib/system/file-owner.ts";

/** The command's request to the broker that uses the folder. */
const requestSchema = z.strictObject({ id: z.uuid(), target: z.string() });

/** The broker's answer. */
const answerSchema = z.discriminatedUnion("status", [
  z.strictObject({ status: z.literal("running"), pid: z.int() }),
  z.strictObject({ status: z.literal("done"), manifest: z.string() }),
  z.strictObject({ status: z.literal("failed"), reason: z.string() }),
]);

export type BackupRequest = z.infer<typeof requestSchema>;
export type BackupAnswer = z.infer<typeof answerSchema>;

const requestFile = "backup.request";
const answerFile = /^backup\.answer-[0-9a-f-]{36}$/;

/**
 * Exchanges requests and answers as files in the data folder. Only a user who may write there can ask for a backup, and that user can copy the files
 * and keys anyway. So the broker needs no port, socket or credential for this.
 */
export class RequestFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** @throws Error if another request is waiting, or if the folder takes no file. */
  ask(request: BackupRequest): void {
    if (this.isWaiting()) {
      const file = join(this.#folder, requestFile);
      throw new Error(`${file} is there: another backup was asked for. If none is under way, delete it.`);
    }
    try {
      this.#write(requestFile, request);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`the request to the broker cannot be written to ${this.#folder}: ${reason}`, { cause });
    }
  }

  withdraw(): void {
    this.#removeRequest();
  }

  /** Whether the broker has not taken the request yet. */
  isWaiting(): boolean {
    return existsSync(join(this.#folder, requestFile));
  }

  /** Reads and removes the waiting request; undefined if there is none. @throws Error if it is malformed, or belongs to another user. */
  take(): BackupRequest | undefined {
    const text = this.#readRequest();
    if (text === undefined) return undefined;
    this.#removeRequest();
    return requestSchema.parse(JSON.parse(text));
  }

  answer(id: string, answer: BackupAnswer): void {
    this.#write(`backup.answer-${id}`, answer);
  }

  /** The newest answer; undefined before the first. */
  findAnswer(id: string): BackupAnswer | undefined {
    const text = this.#read(`backup.answer-${id}`);
    return text === undefined ? undefined : answerSchema.parse(JSON.parse(text));
  }

  /** Marks the answer as new. A broker that makes a backup does this again and again, as a sign of life. */
  renew(id: string): void {
    const now = new Date();
    utimesSync(join(this.#folder, `backup.answer-${id}`), now, now);
  }

  /** The names and times of all answers: they change while the broker deals with requests. Reads no answer, since it may be for another user. */
  signOfLife(): string {
    const names = readdirSync(this.#folder).filter((name) => answerFile.test(name));
    const times = names.map((name) => statSync(join(this.#folder, name), { throwIfNoEntry: false })?.mtimeMs);
    return JSON.stringify([names, times]);
  }

  forget(id: string): void {
    rmSync(join(this.#folder, `backup.answer-${id}`), { force: true });
  }

  /** Removes requests and answers that are left from an earlier run. */
  clear(): void {
    this.#removeRequest();
    for (const name of readdirSync(this.#folder)) {
      if (answerFile.test(name)) rmSync(join(this.#folder, name), { force: true });
    }
  }

  /** The text of the request. Removes a request that this user may not read: its command then ends, because it gets no answer. */
  #readRequest(): string | undefined {
    try {
      return this.#read(requestFile);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EACCES") this.#removeRequest();
      throw error;
    }
  }

  #removeRequest(): void {
    rmSync(join(this.#folder, requestFile), { force: true });
  }

  #read(name: string): string | undefined {
    try {
      return readFileSync(join(this.#folder, name), "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Writes the file atomically, and never through a link: root writes here too, in a folder of the broker's user. */
  #write(name: string, value: BackupRequest | BackupAnswer): void {
    const unfinished = join(this.#folder, `${name}.unfinished`);
    rmSync(unfinished, { force: true });
    writeFileSync(unfinished, JSON.stringify(value), { mode: 0o600, flag: "wx" });
    giveToFolderOwner(unfinished);
    renameSync(unfinished, join(this.#folder, name));
  }
}
