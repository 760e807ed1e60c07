import { readdirSync, readFileSync } from "node:fs";

const ticksPerSecond = 100;
const kibibytesPerMebibyte = 1024;

/** Resident memory of a process, now and at its highest, in MiB. @param {number} pid */
export function readMemory(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return { residentMb: field(status, "VmRSS"), peakMb: field(status, "VmHWM") };
}

/** Processor time that a process has used, in seconds. @param {number} pid */
export function readCpuSeconds(pid) {
  const { utime, stime } = readStat(pid);
  return (utime + stime) / ticksPerSecond;
}

/** Processor time that a process and its children have used, in seconds. Children that have ended count too. @param {number} pid */
export function readFamilyCpuSeconds(pid) {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => tryReadStat(Number(name)))
    .filter((stat) => stat?.parent === pid);
  const { utime, stime, cutime, cstime } = readStat(pid);
  return (
    children.reduce((sum, stat) => sum + stat.utime + stat.stime, utime + stime + cutime + cstime) / ticksPerSecond
  );
}

/** Undefined if the process has ended meanwhile. */
function tryReadStat(pid) {
  try {
    return readStat(pid);
  } catch {
    return undefined;
  }
}

function readStat(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The program's name, in parentheses, may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number);
  return { parent: Number(fields[1]), utime, stime, cutime, cstime };
}

function field(status, name) {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status);
  return match === null ? Number.NaN : Number(match[1]) / kibibytesPerMebibyte;
}
