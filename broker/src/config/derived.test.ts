import { expect, test } from "vitest";
import { callbackOrigin, consentModeOf, hostNamesOf, listensOnLoopbackOnly } from "./derived.ts";

test.each([
  ["127.0.0.1", true],
  ["127.1.2.3", true],
  ["localhost", true],
  ["::1", true],
  ["0.0.0.0", false],
  ["::", false],
  ["10.0.0.1", false],
  ["127.0.0.1.example", false],
  ["127.example", false],
])("only this machine can reach the host %s: %s", (host, isLoopback) => {
  expect(listensOnLoopbackOnly({ host })).toBe(isLoopback);
});

test.each([
  ["127.0.0.1", undefined, []],
  ["0.0.0.0", "broker-1:8080", ["broker-1"]],
  ["::", "[2001:db8::1]:8080", []],
  ["events.example.org", "10.0.0.1:80", ["events.example.org"]],
])("the host %s, advertised as %s, adds the host names %j", (host, advertisedAddress, names) => {
  expect(hostNamesOf({ allowedHosts: ["a.example"], host, advertisedAddress })).toEqual(["a.example", ...names]);
});

test.each([
  ["127.0.0.1", "auto", "off"],
  ["0.0.0.0", "auto", "try"],
  ["127.0.0.1", "require", "require"],
  ["0.0.0.0", "off", "off"],
] as const)(
  "on the host %s, the consent setting %s means %s, and off while deliveries are paused",
  (host, callbackConsent, mode) => {
    expect(consentModeOf({ host, callbackConsent, deliveries: "active" })).toBe(mode);
    expect(consentModeOf({ host, callbackConsent, deliveries: "paused" })).toBe("off");
  },
);

test.each([
  ["broker.example:8080", "broker.example"],
  ["[::1]:8080", "[::1]"],
  [undefined, "machine"],
])("a node advertised as %s asks its receivers for consent as %s", (advertisedAddress, origin) => {
  expect(callbackOrigin({ advertisedAddress }, "machine")).toBe(origin);
});
