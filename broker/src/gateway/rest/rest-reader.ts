import type { IncomingHttpHeaders } from "node:http";
import { BrokerError, idempotencyKeyHeader, quote } from "@stele/wire";
import type { Extensions } from "../../domain/event.ts";
import { withTraceParent } from "../../domain/trace-parent.ts";
import { parameterError } from "../shared/failure.ts";
import type { ParameterReader } from "../shared/operation-handlers.ts";
import { findTraceParentHeader } from "../shared/trace-parent-header.ts";
import type { Parameters } from "./parameters.ts";
import type { ParameterRules } from "./request-parameters.ts";

// Of any length: the engine decides what a number out of range means.
const integerText = /^-?[0-9]+$/;

/** Converts the text parameters of a REST call to the types that operations take. */
export class RestReader implements ParameterReader {
  readonly #parameters: Parameters;
  readonly #rules: ParameterRules;
  readonly #headers: IncomingHttpHeaders;

  constructor(parameters: Parameters, rules: ParameterRules, headers: IncomingHttpHeaders) {
    this.#parameters = parameters;
    this.#rules = rules;
    this.#headers = headers;
  }

  text(name: string): string {
    const value = this.#parameters.get(name);
    if (value === undefined) throw parameterError(`"${name}" is missing`);
    return value;
  }

  optionalText(name: string): string | undefined {
    return this.#parameters.get(name);
  }

  pageIndex(): number | undefined {
    const text = this.#parameters.get("pageIndex");
    if (text === undefined) return undefined;
    if (!integerText.test(text)) throw new BrokerError("pageIndexInvalid", { details: quote(text) });
    return Number(text);
  }

  integer(name: string): number | undefined {
    const text = this.#parameters.get(name);
    if (text === undefined) return undefined;
    if (!integerText.test(text)) throw parameterError(`"${name}" is not an integer: ${quote(text)}`);
    return Number(text);
  }

  /** Node joins the values of a repeated header by a comma and a space. No key contains a space, so the broker refuses the result. */
  publishKey(): string | undefined {
    const value = this.#headers[idempotencyKeyHeader];
    // Without this error, the client would believe that its key prevents repeats.
    if (value === undefined && this.#parameters.get("idempotencyKey") !== undefined)
      throw parameterError("the key of a publish is the header Idempotency-Key here, not the parameter idempotencyKey");
    return typeof value === "object" ? value.join(", ") : value;
  }

  /** Plain text, as the bytes of its UTF-8 form. */
  content(): Uint8Array {
    return Buffer.from(this.text("content"), "utf8");
  }

  extensions(): Extensions {
    const { extensionPrefix, known } = this.#rules;
    if (extensionPrefix === undefined) return [];
    const extensions: [string, string][] = [];
    for (const [name, value] of this.#parameters) {
      if (name.startsWith(extensionPrefix) && !known.has(name)) extensions.push([name, value]);
    }
    return withTraceParent(extensions, this.traceParent(), extensionPrefix);
  }

  traceParent(): string | undefined {
    return findTraceParentHeader(this.#headers);
  }
}
