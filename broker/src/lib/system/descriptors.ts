import { readFileSync } from "node:fs";

/** Open files without which the broker does not start: Node opens the files of a program side by side. Measured with 512; 400 is too few. */
export const descriptorsMin = 512;

/** Why this process cannot open enough files, and what to do; undefined where it can, and where the system does not say. */
export function findDescriptorProblem(limits = readLimits()): string | undefined {
  const hard = /^Max open files +\S+ +(\d+) /m.exec(limits)?.[1];
  if (hard === undefined || Number(hard) >= descriptorsMin) return undefined;
  return (
    `This process may open ${hard} files at once, and needs at least ${descriptorsMin}, with many connections several thousand. ` +
    `Raise the hard limit: \`ulimit -Hn\` of a shell, LimitNOFILE of systemd, --ulimit nofile of Docker.`
  );
}

/** Node has raised the soft limit to the hard one by now. */
function readLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}
