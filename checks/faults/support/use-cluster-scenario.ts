import { afterAll } from "vitest";
import type { ClusterOptions } from "../../harness/cluster.ts";
import { ClusterScenario } from "./cluster-scenario.ts";

/**
 * One cluster for the tests of the describe block that this is called in, one after another: each finds all nodes at work. What a test
 * verifies holds for those before it too; after one that failed, the next has a cluster of its own.
 */
export function useClusterScenario(options: ClusterOptions = {}): () => Promise<ClusterScenario> {
  let scenario: ClusterScenario | undefined;
  afterAll(async () => {
    await scenario?.[Symbol.asyncDispose]();
  });
  return async () => {
    if (scenario?.isVerified) {
      await scenario.resume();
      return scenario;
    }
    const failed = scenario;
    scenario = undefined;
    await failed?.[Symbol.asyncDispose]();
    scenario = await ClusterScenario.start(options);
    return scenario;
  };
}
