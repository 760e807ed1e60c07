import { afterEach, beforeEach, describe } from "vitest";
import { testBalance } from "./coordinator-balance.contract.ts";
import { testHints } from "./coordinator-hints.contract.ts";
import { testMembers } from "./coordinator-members.contract.ts";
import { testOwnership } from "./coordinator-ownership.contract.ts";
import { type CoordinatorFixture, CoordinatorScenario } from "./coordinator-scenario.contract.ts";

/** The guarantees of the Coordinator port. */
export function testCoordinator(name: string, create: () => Promise<CoordinatorFixture>): void {
  describe(`${name} keeps the coordinator's contract`, () => {
    const scenario = new CoordinatorScenario();
    beforeEach(async () => scenario.begin(create));
    afterEach(async () => scenario.end());

    testMembers(scenario);
    testOwnership(scenario);
    testBalance(scenario);
    testHints(scenario);
  });
}
