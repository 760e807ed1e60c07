/**
 * The value of JDK_JAVA_OPTIONS for examples, which Java compiles at each start. Without its second compiler and without threads for garbage, this takes a
 * third less processor time. Keeps the caller's options, and a collector that these choose: with two collectors, Java does not start.
 */
export function toQuickJava(env: NodeJS.ProcessEnv): string {
  const own = env["JDK_JAVA_OPTIONS"] ?? "";
  const hasCollector = /-XX:\+Use\w+GC\b/.test(`${env["JAVA_TOOL_OPTIONS"] ?? ""} ${own}`);
  return `${own} -XX:TieredStopAtLevel=1${hasCollector ? "" : " -XX:+UseSerialGC"}`;
}
