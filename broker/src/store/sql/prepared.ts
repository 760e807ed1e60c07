import type { Compilable, CompiledQuery } from "kysely";

class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** An object that returns a placeholder for every property. */
const placeholders = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });

/** A query that is built and compiled once; a call only binds values. */
export interface Prepared<Values, Row> {
  readonly sql: string;
  bind(values: Values): CompiledQuery<Row>;
  /** The values to bind, in the order of the query. Writes them to `into`, if given: a caller of many queries needs one array for all. */
  parametersOf(values: Values, into?: unknown[]): readonly unknown[];
}

/**
 * Compiles the query that `build` makes. `build` receives placeholders for the values and may use them only where a query takes a value.
 * Building costs more than running a look-up by key (measured: 12 µs against 6 µs in all), and the hot path runs four queries a block.
 */
export function prepare<Values extends object, Row>(build: (values: Values) => Compilable<Row>): Prepared<Values, Row> {
  const compiled = build(placeholders as Values).compile(); // The query builder passes them through unread.
  const names = compiled.parameters.map((parameter) => (parameter instanceof Placeholder ? parameter.name : undefined));
  const parametersOf = (values: Values, into: unknown[] = []): readonly unknown[] => {
    const named = values as Readonly<Record<string, unknown>>; // A placeholder has the name of a property of the values.
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index];
      into[index] = name === undefined ? compiled.parameters[index] : named[name];
    }
    return into;
  };
  return {
    sql: compiled.sql,
    bind: (values) => ({ ...compiled, parameters: parametersOf(values) }),
    parametersOf,
  };
}
