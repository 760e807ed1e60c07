import type * as z from "zod";
import type { DocumentOptions } from "../openapi.ts";
import { type JsonSchema, listProperties, toJsonSchema, toNonNullSchema } from "../json-schema.ts";
import { type AdminOperation, adminOperations } from "./admin-operations.ts";
import { problemSchema } from "./admin-schemas.ts";

/** Path of the admin API, after the base path. */
export const adminPath = "/admin/v1";

/** The OpenAPI 3.1 document of the admin API, made from the schemas that validate its requests. */
export function toAdminOpenApi({ version, basePath }: Pick<DocumentOptions, "version" | "basePath">) {
  const schemas = new Map<string, JsonSchema>([[titleOf(problemSchema), toJsonSchema(problemSchema)]]);
  for (const { result } of Object.values(adminOperations)) schemas.set(titleOf(result), toJsonSchema(result));
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const [name, operation] of Object.entries(adminOperations)) {
    const path = (paths[operation.path] ??= {});
    path[operation.method.toLowerCase()] = toOperation(name, operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Stele: admin",
      version,
      description:
        "What operators see and do. A failure has its HTTP status and a body of type application/problem+json with the code of the error catalogue.",
    },
    servers: [{ url: `${basePath}${adminPath}` }],
    paths,
    components: {
      schemas: Object.fromEntries(schemas),
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
    },
    security: [{}, { key: [] }],
  };
}

function toOperation(operationId: string, operation: AdminOperation): JsonSchema {
  const { path, summary, query, body, result } = operation;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = listProperties(query).map(({ name, schema, description, isRequired }) => ({
    name,
    in: "query",
    required: isRequired,
    description,
    schema: toNonNullSchema(schema),
  }));
  const content = body && { content: { "application/json": { schema: toJsonSchema(body) } } };
  return {
    operationId,
    summary,
    parameters: [...inPath, ...inQuery],
    ...(content && { requestBody: content }),
    responses: {
      200: { description: "The result.", content: { "application/json": { schema: reference(result) } } },
      default: {
        description: "A failure.",
        content: { "application/problem+json": { schema: reference(problemSchema) } },
      },
    },
  };
}

function reference(schema: z.ZodType): JsonSchema {
  return { $ref: `#/components/schemas/${titleOf(schema)}` };
}

/** The title of a schema; every schema of a result has one. */
function titleOf(schema: z.ZodType): string {
  return String(schema.meta()?.["title"]);
}
