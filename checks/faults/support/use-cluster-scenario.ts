import { afterAll } from "vitest";
import type { ClusterOptions } from "../../harness/cluster.ts";
import { ClusterScenario } from "./cluster-scenario.ts";

/**
 * One cluster for all tests of the enclosing describe block, one after another. Each test starts with all nodes running, and
 * verifies the whole history. After a failed test, the next test gets a new cluster.
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
