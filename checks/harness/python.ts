import { execFileSync } from "node:child_process";
import { Script } from "./script.ts";

/** The Python that has the journeys' client libraries. If CHECKS_PYTHON names one, a missing library fails the tests instead of skipping them. */
const chosen = process.env["CHECKS_PYTHON"];
const python = chosen ?? "python3";

/** Debian's own Python, which finds the packages that apt-get installs. With CHECKS_DEBIAN_PYTHON=required, a missing library fails the tests. */
export const debianPython = "/usr/bin/python3";
const isDebianRequired = process.env["CHECKS_DEBIAN_PYTHON"] === "required";

/**
 * Whether to run the tests of the client library that the Python `statement` imports. True if `program` can import it, or if a missing library must fail the
 * tests.
 */
export function canImport(statement: string, program = python): boolean {
  if (program === debianPython ? isDebianRequired : chosen !== undefined) return true;
  try {
    execFileSync(program, ["-c", statement], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A script that runs in `program`, one of these Pythons. */
export class PythonScript extends Script {
  constructor(file: string, args: readonly string[], program = python) {
    // stomp.py asks the resolver for every name of this machine unless the variable is set.
    super(program, [file, ...args], { STOMP_SKIP_HOSTNAME_SCAN: "1" });
  }
}
