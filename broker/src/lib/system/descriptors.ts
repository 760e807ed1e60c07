import { readFileSync } from "node:fs";

/** Minimum number of open files with which the broker starts: Node opens the files of a program at the same time. Measured: 512 suffice, 400 do not. */
export const descriptorsMin = 512;

/** Says why this process cannot open enough files, and what to do. Undefined if it can, or if the system does not tell the limit. */
export function findDescriptorProblem(limits = readLimits()): string | undefined {
  const hard = /^Max open files +\S+ +(\d+) /m.exec(limits)?.[1];
  if (hard === undefined || Number(hard) >= descriptorsMin) return undefined;
  return (
    `This process may open ${hard} files at once. It needs at least ${descriptorsMin}, and several thousand for many connections. ` +
    `Raise the hard limit: \`ulimit -Hn\` of a shell, LimitNOFILE of systemd, --ulimit nofile of Docker.`
  );
}

/** The limits of this process. Only the hard limit counts: Node has already raised the soft limit to it. */
function readLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}
