import type { Operation } from "@stele/wire";
import type { Extensions } from "../../domain/event.ts";
import { checkWellFormed } from "../shared/decode-text.ts";
import { parameterError } from "../shared/failure.ts";
import type { ParameterReader } from "../shared/operation-handlers.ts";
import { decodeBase64 } from "./base64.ts";
import type { RpcParams } from "../shared/rpc/message.ts";

/** Reads the parameters of a JSON-RPC call, named or by position. */
export class RpcReader implements ParameterReader {
  readonly #values: Readonly<Record<string, unknown>>;

  /** @throws BrokerError 200001 if a required parameter is missing, one has a wrong type, or there are too many by position. */
  constructor(params: RpcParams, operation: Operation) {
    this.#values = toNamed(params, operation);
    checkTypes(this.#values, operation);
  }

  text(name: string): string {
    const text = this.optionalText(name);
    if (text === undefined) throw parameterError(`"${name}" is missing`);
    return text;
  }

  optionalText(name: string): string | undefined {
    const value = this.#value(name) ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value !== "string") throw parameterError(`"${name}" is not a string`);
    return checkWellFormed(value, name);
  }

  pageIndex(): number | undefined {
    return this.#number("pageIndex");
  }

  integer(name: string): number | undefined {
    return this.#number(name);
  }

  content(): Uint8Array {
    return decodeBase64(this.text("content"), "content");
  }

  extensions(): Extensions {
    return Object.entries(this.#value("extensions") ?? {}).map(([key, value]) => {
      // The schema ignores a key `__proto__`, so its value is checked here.
      if (typeof value !== "string") throw parameterError('"extensions" holds a value that is not a string');
      return [checkWellFormed(key, "extensions"), checkWellFormed(value, "extensions")];
    });
  }

  publishKey(): string | undefined {
    return this.optionalText("idempotencyKey");
  }

  #number(name: string): number | undefined {
    const value = this.#value(name);
    return typeof value === "number" ? value : undefined;
  }

  #value(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
  }
}

function toNamed(params: RpcParams, operation: Operation): Readonly<Record<string, unknown>> {
  if (!isPositional(params)) return params;
  const names = Object.keys(operation.params.shape);
  if (params.length > names.length) {
    throw parameterError(`${params.length} positional parameters, at most ${names.length}: ${names.join(", ")}`);
  }
  return Object.fromEntries(params.map((value, index) => [names[index], value]));
}

function isPositional(params: RpcParams): params is readonly unknown[] {
  return Array.isArray(params);
}

function checkTypes(named: Readonly<Record<string, unknown>>, operation: Operation): void {
  const [issue] = operation.params.safeParse(named).error?.issues ?? [];
  if (issue === undefined) return;
  const [name] = issue.path;
  const value = typeof name === "string" && Object.hasOwn(named, name) ? named[name] : undefined;
  if (value === undefined || value === null) throw parameterError(`"${String(name)}" is missing`);
  throw parameterError(`"${issue.path.join(".")}": ${issue.message}`);
}
