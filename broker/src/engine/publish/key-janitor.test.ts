import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createSystemClock } from "../../lib/system/clock.ts";
import { defaultEngineLimits } from "../limits.ts";
import { KeyJanitor } from "./key-janitor.ts";

it("lets others run between two pages of expired keys", async () => {
  const ended = createDeferred<void>();
  const log: string[] = [];
  const removed = [1_000, 1_000, 7];
  const keys = {
    expirePublishKeys: async (): Promise<number> => {
      log.push("page");
      setImmediate(() => log.push("turn"));
      return removed.shift() ?? 0;
    },
    countPublishKeys: async () => {
      ended.resolve();
      return { total: 0, byAccount: new Map<string, number>() };
    },
    dropPublishKeys: async (): Promise<void> => {},
  };
  const times = { advance: async (): Promise<void> => {}, find: async (): Promise<number> => 0 };
  const own = { groupId: defaultGroupId, keys, clock: createSystemClock(), times, logger: silentLogger };
  const janitor = new KeyJanitor({ ...own, limits: defaultEngineLimits });
  janitor.start();
  await ended.promise;
  await janitor.stop();
  expect(log).toEqual(["page", "turn", "page", "turn", "page", "turn"]);
});
