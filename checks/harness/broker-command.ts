import { runKeys, runRoles, runVerify } from "@stele/broker";
import type { CommandRun } from "./stele-command.ts";

type Environment = Readonly<Record<string, string>>;

const commands = { key: runKeys, role: runRoles, verify: runVerify } as const;

/**
 * Runs a command of the broker in this process, because starting a process takes longer than the command. `env` is its whole environment: set HOME or
 * XDG_CONFIG_HOME there, because a command without them uses the files of the user who runs the tests.
 */
export async function callBrokerCommand(
  name: keyof typeof commands,
  args: readonly string[],
  env: Environment = {},
): Promise<CommandRun> {
  const { exitCode, output, problem } = await commands[name](args, { env, now: () => Date.now() });
  return { code: exitCode, stdout: output, stderr: problem };
}

/** Runs `stele key` or `stele role`, and returns its output. @throws Error with the problem if the command fails. */
export async function changeAccess(
  name: "key" | "role",
  args: readonly string[],
  env: Environment = {},
): Promise<string> {
  const { code, stdout, stderr } = await callBrokerCommand(name, args, env);
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
}
