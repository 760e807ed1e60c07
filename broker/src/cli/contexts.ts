import { statSync } from "node:fs";
import * as z from "zod";
import { changeUserFile, readUserFile, userFile } from "../lib/system/user-file.ts";
import type { CliIo } from "./io.ts";

/** A broker that the user named, with what a client needs to call it. */
const contextSchema = z.strictObject({
  url: z.string(),
  adminUrl: z.string().optional(),
  groupId: z.string().optional(),
  key: z.string().optional(),
});
export type Context = z.output<typeof contextSchema>;

const fileSchema = z.strictObject({
  current: z.string().optional(),
  contexts: z.record(z.string(), contextSchema),
});
export type ContextFile = z.output<typeof fileSchema>;

/** Permission bits of the file's group and of other users. */
const othersRights = 0o077;

/** The user's contexts, in a file that only the user may read, because it contains keys. */
export class Contexts {
  readonly file: string;

  constructor({ env }: Pick<CliIo, "env">) {
    this.file = userFile("contexts.json", env);
  }

  /** @throws Error that says what to do if the file exists but cannot be read or parsed. */
  read(): ContextFile {
    return this.#parse(this.#readText());
  }

  /** @throws Error that says what to do if the file cannot be read or written; the error of `change`. */
  async change(change: (file: ContextFile) => ContextFile): Promise<void> {
    try {
      await changeUserFile(this.file, (text) => `${JSON.stringify(change(this.#parse(text)), null, 2)}\n`);
    } catch (cause) {
      if (!(cause instanceof Error && "syscall" in cause)) throw cause;
      const remedy = "name a folder of this user by HOME or XDG_CONFIG_HOME";
      throw new Error(`the contexts cannot be written (${cause.message}): ${remedy}`, { cause });
    }
  }

  #readText(): string | undefined {
    try {
      return readUserFile(this.file);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const remedy = "name the broker by --url, or a folder of this user by XDG_CONFIG_HOME";
      throw new Error(`the contexts cannot be read (${reason}): ${remedy}`, { cause });
    }
  }

  #parse(text: string | undefined): ContextFile {
    if (text === undefined) return { contexts: {} };
    try {
      return fileSchema.parse(JSON.parse(text));
    } catch (cause) {
      throw new Error(`${this.file} does not contain valid contexts; repair or remove it`, { cause });
    }
  }

  /** A warning that says what to do if others can read the keys; undefined if they cannot. */
  findProblem(): string | undefined {
    try {
      if ((statSync(this.file).mode & othersRights) === 0) return undefined;
      return `other users can read the keys in ${this.file}: run chmod 600 ${this.file}`;
    } catch {
      return undefined;
    }
  }
}
