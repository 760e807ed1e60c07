import { afterAll } from "vitest";
import type { ClusterOptions } from "../../harness/cluster.ts";
import { ClusterTrial } from "./cluster-trial.ts";

/**
 * One cluster for the tests of the describe block that this is called in, one after another: each finds all nodes at work. What a test
 * verifies holds for those before it too; after one that failed, the next has a cluster of its own.
 */
export function useClusterTrial(options: ClusterOptions = {}): () => Promise<ClusterTrial> {
  let trial: ClusterTrial | undefined;
  afterAll(async () => {
    await trial?.[Symbol.asyncDispose]();
  });
  return async () => {
    if (trial?.isVerified) {
      await trial.resume();
      return trial;
    }
    const failed = trial;
    trial = undefined;
    await failed?.[Symbol.asyncDispose]();
    trial = await ClusterTrial.start(options);
    return trial;
  };
}
