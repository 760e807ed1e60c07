import { checkValues, toSettings } from "./check-values.ts";
import { findConflicts } from "./conflicts.ts";
import { variablesOfGroups } from "./groups.ts";
import { renderEffective, renderHelp } from "./render.ts";
import { findSecretConfigFile } from "./secret-config-file.ts";
import { type Config, settings } from "./settings.ts";
import { type Environment, readSources } from "./sources.ts";

export type { Environment } from "./sources.ts";

/** Values of the environment variables that groups refer to. */
export type Secrets = ReadonlyMap<string, string>;

export interface LoadOptions extends Environment {
  /** Version of the product, for `--version`. */
  readonly version: string;
}

/**
 * Result of loading. `printed`: the command asked for `output` only (`--help`, `--version`); exit code 0. `checked`: `--check-config` found no
 * problem; `output` lists the settings. `refused`: every problem found, for standard error; the exit code is not 0.
 */
export type LoadOutcome =
  | {
      readonly status: "loaded";
      readonly config: Config;
      readonly secrets: Secrets;
      /** The config file, if it contains a secret. */
      readonly secretFile: string | undefined;
    }
  | { readonly status: "printed"; readonly output: string }
  | { readonly status: "checked"; readonly output: string; readonly config: Config; readonly secrets: Secrets }
  | { readonly status: "refused"; readonly problems: readonly string[] };

/** Reads flags, environment and config file into one frozen Config. Reports bad input as `refused` and never throws for it. */
export function loadConfig(options: LoadOptions): LoadOutcome {
  const sources = readSources(settings, options);
  if (sources.action === "help") return { status: "printed", output: renderHelp(settings) };
  if (sources.action === "version") return { status: "printed", output: `stele ${options.version}\n` };

  const checked = checkValues(settings, sources.given);
  const config = toSettings(settings, checked);
  const faults = [...sources.problems, ...checked.problems];
  const problems = faults.length > 0 ? faults : [...findConflicts(config), ...findMissing(config, sources.variables)];
  if (problems.length > 0) return { status: "refused", problems };
  const loaded = { config, secrets: sources.variables };
  return sources.action === "check-config"
    ? { status: "checked", output: renderEffective(settings, checked), ...loaded }
    : { status: "loaded", ...loaded, secretFile: findSecretConfigFile(sources) };
}

function findMissing({ groups = [] }: Config, variables: Secrets): readonly string[] {
  const missing = variablesOfGroups(groups).filter((name) => !variables.has(name));
  return missing.map((name) => `${name} is not set, but a group's signer needs it`);
}
