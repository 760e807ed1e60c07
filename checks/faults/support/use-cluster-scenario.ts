import { afterAll } from "vitest";
import type { ClusterOptions } from "../../harness/cluster.ts";
import { ClusterScenario } from "./cluster-scenario.ts";

/**
 * Shares one cluster between the tests of the enclosing describe block. Each test first calls the returned function, which starts stopped nodes, and last
 * `verify`, which checks the whole history. If `verify` has not passed, the next test gets a new cluster.
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
