import * as z from "zod";
import { type ErrorName, errorCatalogue } from "../errors/catalogue.ts";
import { listProperties, toJsonSchema } from "./json-schema.ts";
import type { DocumentOptions } from "./openapi.ts";
import { type Operation, operationNames, operations } from "./operations.ts";

/** The JSON-RPC error code of every failure that is in the catalogue, except {@link rpcOwnErrors}. */
export const rpcBrokerFailureCode = -32001;

/** The failures of the catalogue for which JSON-RPC 2.0 has an error of its own (section 5.1). */
export const rpcOwnErrors = {
  parameterInvalid: { code: -32602, message: "Invalid params" },
  unknown: { code: -32603, message: "Internal error" },
} as const satisfies Partial<Record<ErrorName, unknown>>;

const booleanText = z.enum(["true", "false"]);

/** The OpenRPC document of the JSON-RPC interface, made from the schemas that validate requests. */
export function toOpenRpc(options: DocumentOptions) {
  return {
    openrpc: "1.3.2",
    info: { title: "Stele", version: options.version },
    servers: [{ name: "stele", url: `${options.basePath}/jsonrpc` }],
    methods: operationNames.map((name) => toMethod(name)),
  };
}

function toMethod(name: (typeof operationNames)[number]) {
  const operation: Operation = operations[name];
  const result = operation.result instanceof z.ZodBoolean ? booleanText : operation.result;
  return {
    name,
    summary: operation.summary,
    paramStructure: "either",
    params: listProperties(operation.params).map(({ name, schema, description, isRequired }) => ({
      name,
      description,
      required: isRequired,
      schema: toJsonSchema(schema),
    })),
    result: { name: `${name}Result`, schema: toJsonSchema(result) },
    errors: toErrors(operation),
  };
}

// OpenRPC allows each code once, and most catalogue errors share one; `data.code` tells them apart.
function toErrors({ errors }: Operation) {
  const refusals = errors.filter((name) => !Object.hasOwn(rpcOwnErrors, name));
  const message = "the broker refused the call; data.code says why";
  return [
    { code: rpcBrokerFailureCode, message, data: toRows(refusals) },
    { ...rpcOwnErrors.parameterInvalid, data: toRows(["parameterInvalid"]) },
    { ...rpcOwnErrors.unknown, data: toRows(["unknown"]) },
  ];
}

function toRows(names: readonly ErrorName[]) {
  const rows = names.map((name) => errorCatalogue[name]).toSorted((left, right) => left.code - right.code);
  return rows.map(({ code, message }) => ({ code, message }));
}
