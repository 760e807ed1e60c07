import { readFileSync } from "node:fs";

const kibibytesPerMebibyte = 1024;

/** Highest resident memory of a process since it started, in MiB (`VmHWM` of Linux). */
export function peakMebibytes(pid: number): number {
  return readMebibytes(pid, /^VmHWM:\s+(\d+) kB$/m);
}

/** Resident memory of a process now, in MiB (`VmRSS` of Linux). */
export function residentMebibytes(pid: number): number {
  return readMebibytes(pid, /^VmRSS:\s+(\d+) kB$/m);
}

function readMebibytes(pid: number, line: RegExp): number {
  const match = line.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (match === null) throw new Error(`process ${pid} does not report its memory`);
  return Number(match[1]) / kibibytesPerMebibyte;
}
