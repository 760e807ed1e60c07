import { describe, expect, it } from "vitest";
import { publishDigest, type PublishRequest } from "./publish-digest.ts";

const request: PublishRequest = {
  topic: "a",
  content: new Uint8Array([1, 2]),
  extensions: [
    ["svc-a", "1"],
    ["svc-b", "2"],
  ],
};
const digest = publishDigest(request);

describe("publishDigest", () => {
  it("publishDigest ignores the order of the extensions", () => {
    expect(publishDigest({ ...request, extensions: request.extensions.toReversed() })).toBe(digest);
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
  });

  it.each<[string, Partial<PublishRequest>]>([
    ["another topic", { topic: "b" }],
    ["another content", { content: new Uint8Array([1, 3]) }],
    ["a topic that moved into the content", { topic: "", content: new Uint8Array([1, 2, 97]) }],
    ["one extension less", { extensions: [["svc-a", "1"]] }],
    [
      "text that moved from a value into the next key",
      {
        extensions: [
          ["svc-a", ""],
          ["1svc-b", "2"],
        ],
      },
    ],
  ])("publishDigest differs for %s", (_, change) => {
    expect(publishDigest({ ...request, ...change })).not.toBe(digest);
  });
});
