import { expect, it } from "vitest";
import { formatManifest, parseManifest, toManifest } from "./manifest.ts";

it.each(["", ".", "..", "../signer.key", "/etc/signer.key", "a/signer.key", "..\\signer.key", "a\0", "a".repeat(256)])(
  "a manifest that names the file %j is refused: it could lead out of the folder",
  (name) => {
    const file = { name, bytes: 0, sha256: "0".repeat(64) };
    const text = formatManifest(toManifest({ version: "1", madeAt: "2026-11-23T09:00:00Z", files: [file] }));
    expect(() => parseManifest(text)).toThrow("name");
    expect(parseManifest(text.replace(JSON.stringify(name), '"..a%2Fb.key"')).files).toHaveLength(1);
  },
);
