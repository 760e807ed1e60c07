import * as z from "zod";
import { errorCatalogue } from "../errors/catalogue.ts";
import { listProperties, toJsonSchema } from "./json-schema.ts";
import type { DocumentOptions } from "./openapi.ts";
import { type Operation, operationNames, operations } from "./operations.ts";

/** The JSON-RPC error code of every failure that is in the catalogue. */
export const rpcBrokerFailureCode = -32001;

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
    errors: [toFailures(operation)],
  };
}

// OpenRPC allows each code once, and all catalogue errors share one; `data.code` tells them apart.
function toFailures(operation: Operation) {
  const rows = operation.errors.map((name) => errorCatalogue[name]).toSorted((left, right) => left.code - right.code);
  return {
    code: rpcBrokerFailureCode,
    message: "the broker refused the call; data.code says why",
    data: rows.map(({ code, message }) => ({ code, message })),
  };
}
