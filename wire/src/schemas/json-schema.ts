import * as z from "zod";

/** A JSON Schema (2020-12) as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema of what a client may send or receives; without the `$schema` member, since documents name the dialect once. */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}

/** As {@link toJsonSchema}, for a place where leaving out is the only way to give nothing, such as a query string. */
export function toPresentSchema(schema: z.ZodType): JsonSchema {
  const inner = schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ? schema.unwrap() : undefined;
  // What an optional or nullable schema wraps is a schema.
  if (inner !== undefined) return { ...toPresentSchema(inner as z.ZodType), ...schema.meta() };
  return toJsonSchema(schema);
}

/** Names, schemas and whether they are required, in the order of an object schema. */
export function listProperties(params: z.ZodObject) {
  return Object.entries(params.shape).map(([name, value]) => {
    const schema = value as z.ZodType; // The shape of an object schema holds schemas.
    return {
      name,
      schema,
      description: schema.description ?? "",
      isRequired: !schema.safeParse(undefined).success,
    };
  });
}
