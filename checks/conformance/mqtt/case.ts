import type { Context } from "./context.ts";

/** One check of the broker, and the normative statements that it holds: the part of an identifier behind `MQTT-`. */
export interface Case {
  readonly name: string;
  /** Of 3.1.1; a case without any is not run with it. */
  readonly v4?: readonly string[];
  /** Of 5.0; the same. */
  readonly v5?: readonly string[];
  readonly run: (context: Context) => Promise<void>;
}

/** Statements of a case by version. */
export function statementsOf(one: Case, version: 4 | 5): readonly string[] {
  return (version === 4 ? one.v4 : one.v5) ?? [];
}
