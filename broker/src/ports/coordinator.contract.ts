import { afterEach, beforeEach, describe } from "vitest";
import { testBalance } from "./coordinator-balance.contract.ts";
import { testHints } from "./coordinator-hints.contract.ts";
import { testMembers } from "./coordinator-members.contract.ts";
import { testOwnership } from "./coordinator-ownership.contract.ts";
import { type CoordinatorFixture, CoordinatorTrial } from "./coordinator-trial.contract.ts";

/** The guarantees of the Coordinator port. */
export function testCoordinator(name: string, create: () => Promise<CoordinatorFixture>): void {
  describe(`${name} keeps the coordinator's contract`, () => {
    const trial = new CoordinatorTrial();
    beforeEach(async () => trial.begin(create));
    afterEach(async () => trial.end());

    testMembers(trial);
    testOwnership(trial);
    testBalance(trial);
    testHints(trial);
  });
}
