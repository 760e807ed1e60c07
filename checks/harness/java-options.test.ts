import { expect, it } from "vitest";
import { toQuickJava } from "./java-options.ts";

it("toQuickJava adds to the caller's options, but no second collector", () => {
  expect(toQuickJava({})).toBe(" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
  const own = "-Xmx64m -XX:-UseG1GC";
  expect(toQuickJava({ JDK_JAVA_OPTIONS: own })).toBe(`${own} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC`);
  const chosen = "-XX:+UseParallelGC -Xmx64m";
  expect(toQuickJava({ JDK_JAVA_OPTIONS: chosen })).toBe(`${chosen} -XX:TieredStopAtLevel=1`);
  expect(toQuickJava({ JAVA_TOOL_OPTIONS: chosen })).toBe(" -XX:TieredStopAtLevel=1");
});
