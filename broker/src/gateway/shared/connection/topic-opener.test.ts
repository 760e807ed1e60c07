import { expect, it } from "vitest";
import { testCaller } from "../../../engine/testing/as-caller.ts";
import { KnownTopics, TopicOpener } from "./topic-opener.ts";

const unused = (): never => expect.fail("a publish opens nothing here");

it("remembers topics, but not under a text that is longer than any group", async () => {
  const broker = { exist: unused, open: unused };
  const opener = new TopicOpener({ broker, caller: testCaller, known: new KnownTopics(), isAutomatic: false });
  const [plain, long] = [
    { topic: "a", groupId: "1" },
    { topic: "a", groupId: "g".repeat(60_000) },
  ];
  await opener.ensure(plain);
  await opener.ensure(long);
  expect([opener.isKnown(plain), opener.isKnown(long)]).toEqual([true, false]);
});
