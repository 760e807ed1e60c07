import { type ConsoleFile, toEtag } from "../console-files.ts";
import { findOrigin, type LogIn } from "./log-in.ts";

/** The console's page for each host. It names the log-ins whose provider can send the browser back to that host. */
export class LogInIndexes {
  readonly #plain: ConsoleFile;
  readonly #logIns: readonly LogIn[];
  /** Pages by the names of their log-ins: at most as many as the settings have origins. */
  readonly #made = new Map<string, ConsoleFile>();

  constructor(plain: ConsoleFile, logIns: readonly LogIn[]) {
    this.#plain = plain;
    this.#logIns = logIns;
  }

  at(host: string | undefined): ConsoleFile {
    const offered = this.#logIns.filter((logIn) => findOrigin(logIn, host) !== undefined);
    if (offered.length === 0) return this.#plain;
    const names = offered.map(({ name }) => name).join(" ");
    const file = this.#made.get(names) ?? this.#make(names);
    this.#made.set(names, file);
    return file;
  }

  #make(names: string): ConsoleFile {
    const text = this.#plain.bytes
      .toString()
      .replace('name="log-ins" content=""', () => `name="log-ins" content="${names}"`);
    const bytes = Buffer.from(text);
    return { ...this.#plain, bytes, etag: toEtag(bytes) };
  }
}
