import { expect, it } from "vitest";
import { parseGroupId } from "../../domain/group-id.ts";
import { positionZero } from "../../domain/position.ts";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import { subscriptionOf } from "../../ports/store-examples.contract.ts";
import { TestCluster } from "../testing/test-cluster.ts";

it("each node logs once that no node has delivered a group with subscriptions for a minute", async () => {
  const warnings: (readonly [string, LogFields | undefined])[] = [];
  const logger = { ...silentLogger, warn: (text: string, fields?: LogFields) => warnings.push([text, fields]) };
  const cluster = await TestCluster.start(2, { logger });
  const groupId = parseGroupId("gone");
  await cluster.shared.store.insertSubscription(subscriptionOf(1, { groupId, cursor: positionZero }), 0);
  await cluster.clock.advance(50_000);
  expect(warnings).toEqual([]);
  await cluster.clock.advance(600_000);
  const remedy = "configure a group with this id at a node that can reach its chain, or unSubscribe them";
  const warning = ["subscriptions get no events: no node delivers their group", { groupId, remedy }];
  expect(warnings).toEqual([warning, warning]);
  await cluster.stopAll();
});
