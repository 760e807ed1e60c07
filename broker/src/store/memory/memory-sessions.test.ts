import { expect, it } from "vitest";
import { claimOf, idOf } from "../../ports/session-examples.contract.ts";
import { MemorySessions } from "./memory-sessions.ts";

it("begins and resumes the sessions of 20,000 clients without a search among them", async () => {
  const sessions = new MemorySessions({ generationOf: () => 0 });
  const claim = (number: number) => sessions.claimSession(claimOf({ key: `c${number}`, newId: idOf(number) }));
  for (let number = 1; number <= 20_000; number += 1) expect((await claim(number)).status).toBe("begun");
  for (let number = 1; number <= 20_000; number += 1) expect((await claim(number)).status).toBe("resumed");
  await sessions.removeSession({ id: idOf(7), epoch: claimOf().newEpoch + 1 });
  expect((await claim(7)).status).toBe("begun");
});
