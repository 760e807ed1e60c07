import * as z from "zod";

/** A JSON Schema as plain data: draft 2020-12, or draft 7 for AsyncAPI. */
export type JsonSchema = Readonly<Record<string, unknown>>;

type Dialect = "draft-2020-12" | "draft-7";

/**
 * Converts a schema of requests, answers or messages. The result has no member `$schema`, because a document names the dialect once for all its schemas.
 */
export function toJsonSchema(schema: z.ZodType, target: Dialect = "draft-2020-12"): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target, io: "input", override: boundTuple });
  return rest;
}

/** Limits a tuple by its length instead of by `items: false`, on which client generators fail. */
function boundTuple({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  const { prefixItems } = jsonSchema;
  if (prefixItems === undefined) return;
  jsonSchema.minItems = prefixItems.length;
  jsonSchema.maxItems = prefixItems.length;
  delete jsonSchema.items;
}

/** Like {@link toJsonSchema}, but without null, which a query string cannot express. */
export function toNonNullSchema(schema: z.ZodType): JsonSchema {
  const inner = schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ? schema.unwrap() : undefined;
  // unwrap() of an optional or nullable schema returns a schema.
  if (inner !== undefined) return { ...toNonNullSchema(inner as z.ZodType), ...schema.meta() };
  return toJsonSchema(schema);
}

/** Lists the members of an object schema in order: name, schema, description, and whether the member is required. */
export function listProperties(params: z.ZodObject) {
  return Object.entries(params.shape).map(([name, value]) => {
    const schema = value as z.ZodType; // The shape of an object schema consists of schemas.
    return {
      name,
      schema,
      description: schema.description ?? "",
      isRequired: !schema.safeParse(undefined).success,
    };
  });
}
