import { type ConsoleFile, toEtag } from "../console-files.ts";
import { findOrigin, type LogIn } from "./log-in.ts";

/** The console's page, which names the log-ins of the address by which it was asked for: a provider sends nobody to another one. */
export class LogInIndexes {
  readonly #plain: ConsoleFile;
  readonly #logIns: readonly LogIn[];
  /** By the names of their log-ins: as many as the settings have origins, at most. */
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
