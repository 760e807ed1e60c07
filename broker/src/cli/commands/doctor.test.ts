import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { run } from "../testing/run.ts";

afterEach(() => vi.unstubAllGlobals());

it("doctor says why a call failed, although the broker asks for a pause that is longer than a check may take", async () => {
  const busy = { code: 200_300, message: "the broker is too busy" };
  vi.stubGlobal("fetch", async (input: string) =>
    input.endsWith("/health/live")
      ? new Response("{}")
      : Response.json(busy, { status: 503, headers: { "retry-after": "30" } }),
  );
  const { code, stdout } = await run(["doctor"], {});
  expect(code).toBe(1);
  const reasons = stdout.map((text) => JSON.parse(text) as { readonly check: string; readonly detail: string });
  for (const check of ["topics", "tail", "admin"]) {
    expect(reasons).toContainEqual(expect.objectContaining({ check, detail: expect.stringContaining(busy.message) }));
  }
});

it("doctor says why a node is not a member of its cluster", async () => {
  const reason = "another node that is up has the address 192.0.2.7:8080";
  const node = { address: "192.0.2.7:8080", isMember: false, reason };
  vi.stubGlobal("fetch", async (input: string) =>
    Response.json(input.endsWith("/health/ready") ? { status: "not ready", node, groups: [] } : {}),
  );
  const { stdout } = await run(["doctor"], {});
  expect(stdout.map((text) => JSON.parse(text) as unknown)).toContainEqual({
    check: "ready",
    status: "failed",
    detail: `the broker is not ready: ${reason}`,
  });
});

it("doctor reports each check, although three of the checks get no answer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const answers: Readonly<Record<string, object>> = { "/health/live": {}, "/admin/v1/nodes": { items: [] } };
  const held: string[] = [];
  vi.stubGlobal("fetch", async (input: string) => {
    const path = new URL(input).pathname;
    const answer = answers[path];
    if (answer !== undefined) return Response.json(answer);
    held.push(path);
    return await new Promise(() => {});
  });
  const running = run(["doctor"], {});
  for (const path of ["/health/ready", "/jsonrpc", "/tail"]) {
    await vi.waitFor(() => expect(held).toContain(path));
    vi.advanceTimersByTime(10_000);
  }
  const { code, stdout } = await running;
  expect(code).toBe(1);
  expect(stdout.map((text) => JSON.parse(text))).toMatchObject([
    { check: "address", status: "ok" },
    { check: "ready", status: "failed", detail: "no success within 10 s" },
    { check: "ports", status: "warning" },
    { check: "topics", status: "failed", detail: "no success within 10 s" },
    { check: "tail", status: "failed", detail: "no success within 10 s" },
    { check: "admin", status: "ok" },
  ]);
});
