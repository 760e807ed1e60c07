import type { Context } from "./context.ts";
import type { Version } from "./frames.ts";

/** One check of the broker, and the statements of each version that it covers. It runs only with versions that have such statements. */
export interface Case {
  readonly name: string;
  readonly covers: Readonly<Partial<Record<Version, readonly string[]>>>;
  readonly run: (context: Context) => Promise<void>;
}

/** The same statements in all versions. */
export function inAll(...statements: readonly string[]): Case["covers"] {
  return { "1.0": statements, "1.1": statements, "1.2": statements };
}

export function since11(...statements: readonly string[]): Case["covers"] {
  return { "1.1": statements, "1.2": statements };
}

export function only(version: Version, ...statements: readonly string[]): Case["covers"] {
  return { [version]: statements };
}
