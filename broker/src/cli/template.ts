import { UsageError } from "./io.ts";

/** The names that a template may use, each with a function that gives its value. */
export type TemplateValues = Readonly<Record<string, () => string>>;

/** Replaces each `{{name}}` by its value. @throws UsageError for an unknown name. */
export function fillTemplate(template: string, values: TemplateValues): string {
  return template.replaceAll(/\{\{\s*(\w*)\s*\}\}/g, (_whole, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value !== undefined) return value();
    const names = Object.keys(values).map((known) => `{{${known}}}`);
    throw new UsageError(`the template has {{${name}}}, which is none of ${names.join(", ")}`);
  });
}
