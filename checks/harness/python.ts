import { execFileSync } from "node:child_process";
import { Script } from "./script.ts";

/** A Python with the clients of the journeys; where the variable names one, no test with them may be left out. */
const chosen = process.env["CHECKS_PYTHON"];
const python = chosen ?? "python3";

/** Debian's own Python, which sees what apt-get installs; the variable says `required` where no test with it may be left out. */
export const debianPython = "/usr/bin/python3";
const isDebianRequired = process.env["CHECKS_DEBIAN_PYTHON"] === "required";

/** Whether tests with a client run here: a statement that imports it. */
export function canImport(statement: string, program = python): boolean {
  if (program === debianPython ? isDebianRequired : chosen !== undefined) return true;
  try {
    execFileSync(program, ["-c", statement], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A script with one of these Pythons. */
export class PythonScript extends Script {
  constructor(file: string, args: readonly string[], program = python) {
    // stomp.py asks the resolver for every name of this machine unless the variable is set.
    super(program, [file, ...args], { STOMP_SKIP_HOSTNAME_SCAN: "1" });
  }
}
