/** A program with its arguments as `spawnSync` takes them, and whether a shell has to start it. */
export interface NpmCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly shell: boolean;
}

/** The command that runs npm with these arguments, which have no quotation marks. */
export function toNpmCommand(args: readonly string[], platform?: NodeJS.Platform): NpmCommand;
