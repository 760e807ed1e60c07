/** The oldest version of Node.js that runs the broker and its commands, as in `engines` of package.json. */
const oldest = [20, 19] as const;

/**
 * If `version` is too old, says which version of Node.js is needed. Without this check, an import would fail, with an error that does not name the cause.
 */
export function findNodeProblem(version: string = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return undefined;
  return `Node.js ${oldest.join(".")} or later is needed; this is ${version}.`;
}
