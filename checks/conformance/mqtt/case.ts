import type { Context } from "./context.ts";

/** One check of the broker, and the normative statements that it covers: their identifiers without `MQTT-`. */
export interface Case {
  readonly name: string;
  /** Statements of 3.1.1. Without any, the case does not run with 3.1.1. */
  readonly v4?: readonly string[];
  /** Statements of 5.0. Without any, the case does not run with 5.0. */
  readonly v5?: readonly string[];
  readonly run: (context: Context) => Promise<void>;
}

/** The statements of a version that a case covers. */
export function statementsOf(one: Case, version: 4 | 5): readonly string[] {
  return (version === 4 ? one.v4 : one.v5) ?? [];
}
