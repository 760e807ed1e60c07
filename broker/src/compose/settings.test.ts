import { expect, it } from "vitest";
import { brokerSettings } from "./settings.ts";

it.each([
  ["names the configured admin port", { STELE_ADMIN_PORT: "9081" }, "http://127.0.0.1:9081"],
  ["is undefined for the default port, which another program may use", {}, undefined],
  ["is undefined for port 0, since only the broker knows the port that it gets", { STELE_ADMIN_PORT: "0" }, undefined],
])("the address that may get an operator's key %s", async (_, env, adminUrl) => {
  const outcome = await brokerSettings.check(undefined, { STELE_ACCESS: "{}", ...env });
  expect(outcome).toMatchObject({ status: "valid", settings: { adminUrl } });
});
