import { readFileSync } from "node:fs";

const kibibytesPerMebibyte = 1024;

/** Highest resident memory of a process since it started, in MiB (`VmHWM` of Linux). */
export function peakMebibytes(pid: number): number {
  const match = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (match === null) throw new Error(`process ${pid} does not report its peak memory`);
  return Number(match[1]) / kibibytesPerMebibyte;
}
