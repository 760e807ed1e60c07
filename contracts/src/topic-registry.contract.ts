import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { describePublish, describeRejections } from "./publish.contract.ts";
import { describeClose, describeOpen } from "./open.contract.ts";
import { RegistryFixture } from "./testing/registry-fixture.ts";
import type { TestChain } from "./testing/test-chain.ts";
import { describeTopic, describeViews } from "./views.contract.ts";
import { describeWriters } from "./writers.contract.ts";

/** The behaviours of sol/TopicRegistry.tree, on any chain. */
export function describeTopicRegistry(chainName: string, startChain: () => Promise<TestChain>): void {
  describe(`TopicRegistry on ${chainName}`, () => {
    let chain: TestChain;
    let fixture: RegistryFixture;

    beforeAll(async () => {
      chain = await startChain();
    });
    afterAll(() => chain.stop());
    beforeEach(async () => {
      fixture = await RegistryFixture.deploy(chain.transport);
    });

    describeOpen(() => fixture);
    describeClose(() => fixture);
    describeWriters(() => fixture);
    describePublish(() => fixture);
    describeRejections(() => fixture);
    describeViews(() => fixture);
    describeTopic(() => fixture);
  });
}
