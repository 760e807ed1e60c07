import { UsageError } from "./io.ts";

/** Names in a template, and what stands for each. */
export type TemplateValues = Readonly<Record<string, () => string>>;

/** Puts a value in the place of each `{{name}}`. @throws UsageError for a name that there is not. */
export function fillTemplate(template: string, values: TemplateValues): string {
  return template.replaceAll(/\{\{\s*(\w*)\s*\}\}/g, (_whole, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value !== undefined) return value();
    const names = Object.keys(values).map((known) => `{{${known}}}`);
    throw new UsageError(`the template has {{${name}}}, which is none of ${names.join(", ")}`);
  });
}
