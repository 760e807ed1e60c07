import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { readKeyDocument } from "./key-source.ts";
import { collectGarbage } from "../lib/testing/collect-garbage.ts";

const documentBytesMax = 256 * 1024;
const unaborted = new AbortController().signal;

let server: Server | undefined;
afterEach(() => {
  vi.useRealTimers();
  server?.closeAllConnections();
  server?.close();
});

/** Starts a server on a free port; returns its URL. */
async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "";
}

it("reads a document of up to 256 KiB from a URL", async () => {
  let bytes = documentBytesMax;
  const url = await serve((_, response) => response.end("x".repeat(bytes)));
  expect(await readKeyDocument(url, unaborted)).toHaveLength(documentBytesMax);
  bytes += 1;
  await expect(readKeyDocument(url, unaborted)).rejects.toThrow("more than 262144 bytes");
});

it("refuses a redirect without following it", async () => {
  const asked: (string | undefined)[] = [];
  const url = await serve(({ url: path }, response) => {
    asked.push(path);
    if (path === "/keys") response.writeHead(302, { location: "/elsewhere" }).end();
    else response.end("{}");
  });
  await expect(readKeyDocument(`${url}/keys`, unaborted)).rejects.toThrow(/^unexpected redirect$/);
  expect(asked).toEqual(["/keys"]);
});

it("says why a document cannot be fetched", async () => {
  const url = await serve(() => {});
  server?.close();
  await expect(readKeyDocument(url, unaborted)).rejects.toThrow(/^ECONNREFUSED$/);
});

it.each([301, 404, 500])("refuses a document with HTTP status %i", async (status) => {
  const url = await serve((_, response) => response.writeHead(status).end("{}"));
  await expect(readKeyDocument(url, unaborted)).rejects.toThrow();
});

it.each<[string, RequestListener]>([
  ["sends nothing", () => {}],
  ["stops after the head", (_, response) => response.flushHeaders()],
])("ends in time if the server %s, even after a garbage collection", async (_, listener) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const url = await serve(listener);
  const asked = server === undefined ? [] : once(server, "request");
  const reading = expect(readKeyDocument(url, unaborted)).rejects.toMatchObject({ name: "TimeoutError" });
  await asked;
  collectGarbage();
  vi.advanceTimersByTime(5_000);
  await reading;
});

it("reads a document of up to 256 KiB from a file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-keys-"));
  const path = join(folder, "keys.json");
  try {
    writeFileSync(path, "x".repeat(documentBytesMax));
    expect(await readKeyDocument(path, unaborted)).toHaveLength(documentBytesMax);
    writeFileSync(path, "x".repeat(documentBytesMax + 1));
    await expect(readKeyDocument(path, unaborted)).rejects.toThrow("more than 262144 bytes");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("refuses a pipe, which nobody may ever write to, and a folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-keys-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  try {
    for (const path of [pipe, folder])
      await expect(readKeyDocument(path, unaborted)).rejects.toThrow("it is not a file");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
