import { afterAll, describe } from "vitest";
import { useWorld } from "../../harness/use.ts";
import type { World } from "../../harness/world.ts";
import { describeNamesAndContent } from "./names-and-content.ts";
import { describeOperations } from "./operations.ts";
import { describeRestart } from "./restart.ts";
import { describeSettings } from "./settings.ts";
import { describeSubscriptions } from "./subscriptions.ts";
import { describeTopics } from "./topics.ts";
import { describeWildcards } from "./wildcards.ts";

/** Short waits between attempts: the broker soon calls a receiver that has recovered. */
const shortBackoff = { STELE_CALLBACK_BACKOFF_MIN_MS: "20", STELE_CALLBACK_BACKOFF_MAX_MS: "200" };

/** The order matters: describeTopics needs a broker without topics, and describeNamesAndContent expects all topics on one page. */
const onOneBroker = [
  describeTopics,
  describeNamesAndContent,
  describeOperations,
  describeSubscriptions,
  describeWildcards,
  describeRestart,
];

/** Runs every suite on a world. The suites without special settings share one broker, because starting a broker takes longest. */
export function describeBehaviour(world: World): void {
  describe.skipIf(world.isAvailable === false)(world.name, () => {
    afterAll(async () => world.close?.());

    describe("on one broker", () => {
      const running = useWorld(world, { env: shortBackoff });
      for (const describeSuite of onOneBroker) describeSuite(world, running);
    });
    describeSettings(world);
  });
}
