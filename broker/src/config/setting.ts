import { z } from "zod";

/** One row of the settings table. */
export interface Setting<Value> {
  readonly section: string;
  readonly description: string;
  readonly schema: z.ZodType<Value>;
  readonly default: Value;
  /** Description of a default that is computed later. */
  readonly defaultText?: string;
  /** Form of a valid value, so that `… is not ${rule}` reads as a sentence. */
  readonly rule: string;
  readonly unit?: string;
  /** A secret is never shown: neither by `--check-config` nor in a problem. */
  readonly secret?: boolean;
  /** How to show a value, valid or not, that contains secrets among other things. */
  readonly show?: (value: unknown) => unknown;
  /** The schema's own messages describe the problem; they contain no secret. */
  readonly usesSchemaMessages?: boolean;
  /** Names of environment variables that a value refers to; the value is not checked yet. */
  readonly variablesOf?: (value: unknown) => readonly string[];
  /** Converts the text of an environment variable or a flag to the value that a config file would contain. Throws RepeatedName; see `decodeJson`. */
  readonly decode: (text: string) => unknown;
}

/** Any table of settings by name. */
export type SettingsTable = Readonly<Record<string, Setting<unknown>>>;

/** The values that a table describes. */
export type SettingsOf<Table extends SettingsTable> = {
  readonly [Name in keyof Table]: Table[Name] extends Setting<infer Value> ? Value : never;
};

type Common<Value> = Pick<
  Setting<Value>,
  "section" | "description" | "default" | "defaultText" | "unit" | "secret" | "show"
>;

interface IntegerOptions extends Common<number> {
  readonly min: number;
  readonly max: number;
}

interface TextOptions<Value extends string | undefined> extends Common<Value> {
  readonly rule: string;
  readonly check: (text: string) => boolean;
}

interface ListOptions extends Common<readonly string[]> {
  readonly rule: string;
  readonly checkEntry: (text: string) => boolean;
}

export function integer({ min, max, ...common }: IntegerOptions): Setting<number> {
  return {
    ...common,
    schema: z.int().min(min).max(max),
    rule: `an integer from ${min} to ${max}`,
    decode: (text) => (/^-?\d+$/.test(text) ? Number(text) : text),
  };
}

export function text<Value extends string | undefined = string>(options: TextOptions<Value>): Setting<Value | string> {
  const { check, ...common } = options;
  return { ...common, schema: z.string().refine(check), decode: (text) => text };
}

export function choice<const Value extends string>(
  values: readonly Value[],
  common: Common<NoInfer<Value>>,
): Setting<Value> {
  return { ...common, schema: z.enum(values), rule: `one of ${values.join(", ")}`, decode: (text) => text };
}

/** A path of a file; empty for none. */
export function pathText(common: Pick<Common<string>, "section" | "description">): Setting<string> {
  return text({ ...common, default: "", rule: "empty or a path", check: (value) => !value.includes("\0") });
}

/** `true` or `false`. */
export function truth(common: Common<boolean>): Setting<boolean> {
  return {
    ...common,
    schema: z.boolean(),
    rule: "true or false",
    decode: (text) => (text === "true" || text === "false" ? text === "true" : text),
  };
}

/** A port, or `off` for none. */
export function portOrOff(common: Common<number | "off">): Setting<number | "off"> {
  return {
    ...common,
    schema: z.union([z.literal("off"), z.int().min(0).max(65_535)]),
    rule: "off or an integer from 0 to 65535",
    decode: (text) => (/^\d+$/.test(text) ? Number(text) : text),
  };
}

/** A list: an array in a config file, comma-separated elsewhere. */
export function list({ checkEntry, ...common }: ListOptions): Setting<readonly string[]> {
  return { ...common, schema: z.array(z.string().refine(checkEntry)), decode: splitList };
}

/** The setting without its default: undefined unless it is given. The docs show `defaultText` as its default. */
export function optional<Value>(setting: Setting<Value>, defaultText: string): Setting<Value | undefined> {
  return { ...setting, default: undefined, defaultText };
}

/** The environment variable of a setting: `dataDir` is `STELE_DATA_DIR`. */
export function environmentName(name: string): string {
  return `STELE_${snakeCase(name).toUpperCase()}`;
}

/** The flag of a setting: `dataDir` is `--data-dir`. */
export function flagName(name: string): string {
  return `--${snakeCase(name).replaceAll("_", "-")}`;
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function splitList(text: string): readonly string[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}
