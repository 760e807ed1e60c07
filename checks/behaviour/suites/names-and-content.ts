import { describe, expect, it } from "vitest";
import { take } from "../../harness/client.ts";
import { apiNames, apiOver } from "../../harness/apis.ts";
import { useReceivers } from "../../harness/use.ts";
import { embeddedWorld, type RunningWorld, type World } from "../../harness/world.ts";

/** All characters that a topic name may have (INTERFACE.md, Topic name). */
const allowed = Array.from({ length: 128 - 32 + 1 }, (_, index) => String.fromCharCode(32 + index)).filter(
  (character) => !"+#".includes(character),
);

const names = [
  ["spaces inside", "a name with spaces"],
  ["a leading space", " first"],
  ["a trailing space", "last "],
  ["slashes", "a/b//c"],
  ["a leading slash", "/first"],
  ["percent escapes", "100%/%41/%2F/%"],
  ["characters of a query string", "a=b&c?d;e"],
  ["quotes and a backslash", `it's "quoted" \\`],
  ["character 128", "x\u0080y"],
  ["character 127", "x\u007fy"],
  ["dots as in a path", "../.."],
  ["a leading dollar sign", "$SYS/x"],
  ["a JavaScript property name", "__proto__"],
  ["one character", "a"],
  ["256 characters", "n".repeat(256)],
  ["all allowed characters, first half", allowed.slice(0, 48).join("")],
  ["all allowed characters, second half", allowed.slice(48).join("")],
] as const;

/**
 * The names that an API sends in a world. Gateways do not depend on the chain. So one world tries each name by each API, and the other worlds try each name by
 * one API.
 */
function namesOf(world: World, apiName: string): readonly (readonly [string, string])[] {
  if (world === embeddedWorld) return names;
  return names.filter((_, index) => apiNames[index % apiNames.length] === apiName);
}

/** Topic names and content of every kind, written and read back (INTERFACE.md, Topic name, Event; REST rule 4). */
export function describeNamesAndContent(world: World, running: () => RunningWorld): void {
  describe(`names and content on the ${world.name}`, () => {
    const receive = useReceivers();
    const test = world.isSlow ? it.concurrent : it;

    // Transports run one after another, because they use the same topics.
    describe.each(apiNames)("by %s", (apiName) => {
      test.each(namesOf(world, apiName))(
        "a topic name with %s comes back unchanged from every operation and in the callback",
        async (_what, topic) => {
          const api = apiOver(running().client.http, apiName);
          const receiver = await receive();
          expect(take("open", await api.call("open", { topic }))).toBe(true);
          expect(take("exist", await api.call("exist", { topic }))).toBe(true);
          const id = take("subscribe", await api.call("subscribe", { topic, url: receiver.url }));
          const sent = take("publish", await api.call("publish", { topic, content: topic }));
          expect(sent.topic).toBe(topic);
          const event = take("getEvent", await api.call("getEvent", { eventId: sent.eventId }));
          expect(event).toMatchObject({ topic, content: Buffer.from(topic).toString("base64") });
          expect(take("state", await api.call("state", { topic }))).toMatchObject({ topicName: topic });
          const { topicInfoList } = take("list", await api.call("list", { pageIndex: 0, pageSize: 99 }));
          expect(topicInfoList.filter(({ topicName }) => topicName === topic)).toHaveLength(1);
          expect(await receiver.waitForCount(1)).toEqual([event]);
          expect(await running().client.findSubscription(id)).toMatchObject({ topicName: topic });
          expect(take("unSubscribe", await api.call("unSubscribe", { subscriptionId: id }))).toBe(true);
        },
      );
    });

    const restApis = apiNames.filter((name) => name.startsWith("REST"));
    const ascii = Array.from({ length: 128 }, (_, index) => String.fromCharCode(index)).join("");
    test.each(
      restApis.flatMap((api) => [
        [api, "every ASCII character", ascii],
        [api, "query string syntax", "?a=b&c=d;e#f%20%zz+g h/i\\j"],
        [api, "characters of every length in UTF-8", "aä€𝄞\u{10ffff}\ufeff\u0000\u2028"],
        [api, "line ends", "\r\n\n\r"],
      ]),
    )("REST content by %s comes back byte for byte: %s", async (apiName, _what, content) => {
      const { client } = running();
      await client.open("awkward");
      const sent = take("publish", await apiOver(client.http, apiName).call("publish", { topic: "awkward", content }));
      const event = await client.getEvent(sent.eventId);
      expect(Buffer.from(event.content, "base64").toString("utf8")).toBe(content);
    });

    test("REST: in a query, + is a space and %2B a plus (URL encoding of forms)", async () => {
      const { client } = running();
      await client.open("plus");
      const answer = await client.http.send({ method: "GET", path: "/rest/publish?topic=plus&content=a+b%2Bc" });
      const event = await client.getEvent((answer.json() as { eventId: string }).eventId);
      expect(Buffer.from(event.content, "base64").toString()).toBe("a b+c");
    });

    const allBytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const long = Uint8Array.from({ length: 65_536 }, (_, index) => (index * 2_654_435_761) >>> 13);
    test.each([
      ["all 256 byte values", allBytes],
      ["one zero byte", Uint8Array.of(0)],
      ["bytes that are not UTF-8", Uint8Array.of(0xc3, 0x28, 0xff, 0xfe, 0xed, 0xa0, 0x80)],
      ["64 KiB", long],
    ])("JSON-RPC content of %s comes back byte for byte, from getEvent and in the callback", async (what, content) => {
      const { client } = running();
      const receiver = await receive();
      const topic = `binary/${what}`;
      await client.open(topic);
      await client.subscribe({ topic, url: receiver.url });
      const sent = await client.publish(topic, content);
      const event = await client.getEvent(sent.eventId);
      expect(Buffer.from(event.content, "base64").equals(content)).toBe(true);
      expect(await receiver.waitForCount(1)).toEqual([event]);
    });

    test("extensions with any text come back unchanged", async () => {
      const { client } = running();
      await client.open("extended");
      const extensions = {
        "svc-a": "",
        "svc-": "only the prefix",
        "svc-ключ": "знач\u0000ение 𝄞",
        "svc-__proto__": "x",
      };
      const sent = await client.publish("extended", "x", extensions);
      expect((await client.getEvent(sent.eventId)).extensions).toEqual(extensions);
    });
  });
}
