import type { Context } from "./context.ts";
import type { Version } from "./frames.ts";

/** One check of the broker, and the statements of each version that it holds. A version without any is not run. */
export interface Case {
  readonly name: string;
  readonly holds: Readonly<Partial<Record<Version, readonly string[]>>>;
  readonly run: (context: Context) => Promise<void>;
}

/** The same statements in several versions. */
export function inAll(...statements: readonly string[]): Case["holds"] {
  return { "1.0": statements, "1.1": statements, "1.2": statements };
}

export function since11(...statements: readonly string[]): Case["holds"] {
  return { "1.1": statements, "1.2": statements };
}

export function only(version: Version, ...statements: readonly string[]): Case["holds"] {
  return { [version]: statements };
}
