import { expect, it } from "vitest";
import { claimOf, filterOf, idOf } from "../../ports/session-examples.contract.ts";
import { MemorySessions } from "./memory-sessions.ts";

it("begins and resumes sessions of 20,000 clients without searching all of them", async () => {
  const sessions = new MemorySessions({ generationOf: () => 0 });
  const claim = (number: number) => sessions.claimSession(claimOf({ key: `c${number}`, newId: idOf(number) }));
  for (let number = 1; number <= 20_000; number += 1) expect((await claim(number)).status).toBe("begun");
  for (let number = 1; number <= 20_000; number += 1) expect((await claim(number)).status).toBe("resumed");
  await sessions.removeSession({ id: idOf(7), epoch: claimOf().newEpoch + 1 });
  expect((await claim(7)).status).toBe("begun");
});

it("finds and removes a filter without reading those of other clients", async () => {
  const sessions = new MemorySessions({ generationOf: () => 0 });
  let looks = 0;
  for (let number = 1; number <= 1_000; number += 1) {
    await sessions.claimSession(claimOf({ key: `c${number}`, newId: idOf(number) }));
    const filter = filterOf(number);
    const counted = {
      ...filter,
      get id() {
        looks += 1;
        return filter.id;
      },
    };
    const key = { id: idOf(number), epoch: claimOf().newEpoch };
    await sessions.saveSessionFilters(key, { put: [counted], removed: [], generation: 0 });
  }
  looks = 0;
  const { id } = filterOf(1_000);
  expect((await sessions.findFilterOwner(id))?.session.id).toBe(idOf(1_000));
  expect(await sessions.removeSessionFilter(id)).toBe(true);
  expect(await sessions.findFilterOwner(id)).toBeUndefined();
  expect(looks).toBeLessThan(10);
});
