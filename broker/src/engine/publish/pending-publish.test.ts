import { expect, it, vi } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import { PendingPublish } from "./pending-publish.ts";

it("calls onPlaced once, although the publish waits for a second transaction after its key was found in use", () => {
  const onPlaced = vi.fn();
  const place = { groupId: defaultGroupId, scope: "", key: "k", topic: parseTopicName("a") };
  const row = { ...place, token: "t", digest: "", sender: "" };
  const payload = { content: new Uint8Array(), extensions: [] };
  const options = {
    row,
    payload,
    session: undefined,
    onPlaced,
    mayStart: undefined,
    since: 0,
    logger: silentLogger,
  };
  const pending = new PendingPublish({ ...options, onTaken: () => {} }, () => {});
  pending.placed();
  pending.placed();
  expect(onPlaced).toHaveBeenCalledTimes(1);
});
