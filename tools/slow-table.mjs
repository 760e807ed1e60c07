/** The time of each test file and of each project of Vitest, longest first. */
export function toSlowTable(files) {
  const times = files.map((file) => ({ name: file.relativeModuleId, project: file.project.name, ms: timeOf(file) }));
  const projects = [...new Set(times.map(({ project }) => project))].map((name) => ({
    name: `all of ${name}, one after another`,
    ms: times.filter(({ project }) => project === name).reduce((sum, { ms }) => sum + ms, 0),
  }));
  return [...projects, ...times]
    .toSorted((left, right) => right.ms - left.ms)
    .map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${name}`)
    .join("\n");
}

/** Milliseconds that a file took, including everything before its first test. */
function timeOf(file) {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } = file.diagnostic();
  return environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration;
}
