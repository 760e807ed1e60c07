import { readFileSync } from "node:fs";

const ticksPerSecond = 100;
const kibibytesPerMebibyte = 1024;

/** Resident memory of a process, now and at its highest, in MiB. @param {number} pid */
export function readMemory(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return { residentMb: field(status, "VmRSS"), peakMb: field(status, "VmHWM") };
}

/** Processor time that a process has used, in seconds. @param {number} pid */
export function readCpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name in parentheses may hold spaces; utime and stime are the 12th and 13th fields after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function field(status, name) {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status);
  return match === null ? Number.NaN : Number(match[1]) / kibibytesPerMebibyte;
}
