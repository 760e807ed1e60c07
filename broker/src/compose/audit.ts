import { closeSync, existsSync, openSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import type { Config } from "../config/settings.ts";
import type { CleanupStack } from "../lib/cleanup-stack.ts";
import type { Logger } from "../lib/logger.ts";
import { giveToFolderOwner } from "../lib/system/file-owner.ts";
import { standardOutput } from "../lib/system/standard-output.ts";
import type { AuditLine, AuditLog } from "../ports/audit-log.ts";
import type { Clock } from "../ports/clock.ts";
import { auditFileFlags, auditFileMode, auditLineStart } from "../telemetry/audit-file.ts";
import { FileAuditLog, formatAuditLine, OutputAuditLog } from "../telemetry/audit-log.ts";

/** Value of `auditLog` for the standard output. */
const toOutput = "stdout";
/** Time limit for writing the last lines when the broker stops, in milliseconds. */
const stopMsMax = 1_000;

interface AuditParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly cleanup: CleanupStack;
}

/** Opens the audit log of the settings; `cleanup` closes it. Undefined if the settings name none. @throws Error if the log cannot be opened. */
export async function startAuditLog({ auditLog }: Config, parts: AuditParts): Promise<AuditLog | undefined> {
  if (auditLog === "") return undefined;
  const log = auditLog === toOutput ? new OutputAuditLog(standardOutput, parts) : new FileAuditLog(auditLog, parts);
  await log.start();
  parts.cleanup.add(() => log.stop(stopMsMax), "audit log");
  return log;
}

/**
 * Appends to the audit log what a command has done. Returns text for the command's standard error. If `auditLog` is `stdout`, that is the line itself; if the
 * line could not be written, the reason; else "".
 */
export function auditCommand(
  { auditLog }: Pick<Config, "auditLog">,
  line: Omit<AuditLine, "protocol" | "outcome">,
): string {
  if (auditLog === "") return "";
  const text = formatAuditLine({ ...line, outcome: "done", protocol: "command", reason: `by user ${userName()}` });
  if (auditLog === toOutput) return text;
  try {
    appendTo(auditLog, text);
    return "";
  } catch (error) {
    return `the change is made, but could not be written to the audit log: ${error instanceof Error ? error.message : String(error)}\n`;
  }
}

function appendTo(path: string, text: string): void {
  const isNew = !existsSync(path);
  const file = openSync(path, auditFileFlags, auditFileMode);
  try {
    if (isNew) giveToFolderOwner(path);
    writeFileSync(file, auditLineStart(path) + text); // Unlike one write, fails if only a part fits on the disk.
  } finally {
    closeSync(file);
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown"); // A user without a name, for example in a container.
  }
}
