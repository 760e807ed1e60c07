import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mainFile } from "../harness/broker-process.ts";
import { findProgram } from "../harness/find-program.ts";
import { callStele, type CommandRun, runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

const folder = createTempFolder();
const programs = join(folder.path, "bin");

function environment(): Record<string, string> {
  const path = [programs, process.env["PATH"]].join(delimiter);
  return { PATH: path, HOME: folder.path, XDG_CONFIG_HOME: join(folder.path, "config"), TERM: "dumb" };
}

beforeAll(async () => {
  mkdirSync(programs);
  const program = join(programs, "stele");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${mainFile}" "$@"\n`);
  chmodSync(program, 0o755);
  for (const name of ["shop", "store-2"]) {
    await callStele(["context", "add", name, "--url", "http://127.0.0.1:1"], { env: environment() });
  }
});
afterAll(() => folder[Symbol.dispose]());

function runShell(...program: readonly string[]): Promise<CommandRun> {
  return runStele([], { program, env: environment() });
}

function canRun(shell: string): boolean {
  return process.env[`CHECKS_${shell.toUpperCase()}`] === "required" || findProgram(shell) !== undefined;
}

it.each(["bash", "zsh", "fish"])("stele completion %s prints a script", async (shell) => {
  const { code, stdout } = await callStele(["completion", shell], { env: environment() });
  expect(code).toBe(0);
  expect(stdout).toContain("--dry-run");
});

it("bash completes commands, flags and their values, and the names of contexts", async () => {
  const cases = [
    ["subs re", "resume retry replay redeliver"],
    ["key ''", "create list revoke"],
    ["role s", "show set"],
    ["verify --re", "--remember --registry"],
    ["--mqtt-po", "--mqtt-port"],
    ["--port 8080 --mqtt-po", "--mqtt-port"],
    ["--log-format ''", "auto json text"],
    ["start --mqtt-po", "--mqtt-port"],
    ["start --log-format ''", "auto json text"],
    ["key create --princ", "--principal"],
    ["backup ./there --data-", "--data-dir"],
    ["scrub -o ''", "table json ndjson"],
    ["restore --output n", "ndjson"],
    ["tail -o ''", "table json ndjson"],
    ["tail 'a/#' --format ''", "interface cloudevents"],
    ["tail --url ''", ""],
    ["tail --context ''", "shop store-2"],
    ["verify --context sto", "store-2"],
    ["context use s", "shop store-2"],
    ["completion ''", "bash zsh fish --help"],
    ["topics list --output j", "json"],
  ] as const;
  const calls = cases.map(([line]) => `complete_line ${line}`);
  // For an empty word, bash offers a command's actions and then all its flags: the split below drops the flags.
  const script = `source <(stele completion bash)
    complete_line() { COMP_WORDS=(stele "$@"); COMP_CWORD=$#; _stele; echo "\${COMPREPLY[@]}"; }
    ${calls.join("\n")}`;
  const { stdout } = await runShell("bash", "-c", script);
  const offered = stdout.split("\n").map((words) => words.split(" --output")[0]);
  expect(cases.map(([line], index) => [line, offered[index]])).toEqual(cases);
});

/** What the user types, and the line after Tab. */
const typed = [
  ["stele sub", "stele subs "],
  ["stele subs redel", "stele subs redeliver "],
  ["stele --mqtt-po", "stele --mqtt-port "],
  ["stele start --mqtt-po", "stele start --mqtt-port "],
  ["stele key create --princ", "stele key create --principal "],
  ["stele tail -o nd", "stele tail -o ndjson "],
  ["stele --log-format j", "stele --log-format json "],
  ["stele context us", "stele context use "],
  ["stele context use sh", "stele context use shop "],
  ["stele tail --context sto", "stele tail --context store-2 "],
] as const;

describe.runIf(canRun("zsh"))("zsh (needs zsh)", () => {
  it("zsh completes commands, flags and their values, and the names of contexts", async () => {
    const output = join(folder.path, "zsh-lines");
    const keys = typed.map(([line]) => `zpty -w -n shell $'${line}\\t\\C-x\\C-r'`);
    // The script runs an interactive shell on its own terminal. There, Control-X Control-R writes the line to a file. The script types only once the line
    // editor runs: before that, the terminal itself handles Control-R. It waits for the text LINE-EDITOR, which only the editor's start prints: the shell's
    // echo of the command has a backslash in it.
    const script = `zmodload zsh/zpty
      zpty shell zsh -f -i
      zpty -w shell 'autoload -Uz compinit; compinit -u -D; source <(stele completion zsh)'
      zpty -w shell 'report() { print -r -- "$BUFFER" >> ${output}; BUFFER= }; zle -N report; bindkey "^X^R" report'
      zpty -w shell 'zle-line-init() { print LINE\\-EDITOR; }; zle -N zle-line-init'
      zpty -r shell text '*LINE-EDITOR*'
      ${keys.join("\n")}
      zpty -w shell ''
      zpty -w shell exit
      while zpty -r shell text; do print -rn -- $text; done`;
    const { stdout } = await runShell("zsh", "-f", "-c", script);
    // `stdout` equals itself: it is there for the report of a failure.
    expect({ lines: readFileSync(output, "utf8").split("\n").slice(0, -1), stdout }).toEqual({
      lines: typed.map(([, completed]) => completed),
      stdout,
    });
  });
});

describe.runIf(canRun("fish"))("fish (needs fish)", () => {
  it("fish completes commands, flags and their values, and the names of contexts", async () => {
    const cases = [
      ["subs red", "redeliver"],
      ["key create --princ", "--principal"],
      ["--mqtt-po", "--mqtt-port"],
      ["--log-format ", "auto json text"],
      ["start --mqtt-po", "--mqtt-port"],
      ["tail -o ", "json ndjson table"],
      ["context us", "use"],
      ["context use s", "shop store-2"],
      ["context use a", ""],
      ["tail --context ", "shop store-2"],
      ["verify --context sto", "store-2"],
      ["--data-dir /et", "/etc/"],
    ] as const;
    const asked = cases.map(([line]) => `echo (complete -C 'stele ${line}' | string replace -r '\\t.*' '')`);
    const { stdout, stderr } = await runShell("fish", "-c", `stele completion fish | source\n${asked.join("\n")}`);
    const offered = stdout.split("\n");
    expect({ cases: cases.map(([line], index) => [line, offered[index]]), stderr }).toEqual({ cases, stderr: "" });
  });
});
