import { expect, it } from "vitest";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessions } from "../../testing/with-sessions.ts";

it.each([
  ["rolled-back", "the index rolls back"],
  ["taken", "another session takes the name at the same moment"],
] as const)("says why no try of a claim gave a session, if the store answers '%s'", async (status, reason) => {
  const store = withSessions(createMemoryStore(), { claimSession: async () => ({ status }) });
  const engine = await TestEngine.start({ store });
  const request = {
    groupId: undefined,
    protocol: "MQTT",
    key: "c",
    isClean: false,
    windowMax: 1,
    will: undefined,
  } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, new RecordingPeer());
  const [error] = await Promise.all([attached.catch((thrown: unknown) => thrown), engine.clock.settle()]);
  expect(error).toMatchObject({ code: 200_300, message: expect.stringContaining(reason) });
  await engine.stop();
});
