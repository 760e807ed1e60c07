import { BlockList, isIPv4 } from "node:net";
import { expect, it } from "vitest";
import { isAddress, isCallbackNetwork, isNetwork } from "./network.ts";

it.each(["10.0.0.0/8", "10.1.2.3/32", "0.0.0.0/0", "fd00::/8", "::ffff:10.0.0.0/104", "::/0"])(
  "accepts the network %s",
  (text) => {
    expect(isNetwork(text)).toBe(true);
    const [address = "", length] = text.split("/");
    expect(() => new BlockList().addSubnet(address, Number(length), isIPv4(address) ? "ipv4" : "ipv6")).not.toThrow();
  },
);

it.each([
  "10/8",
  "192.168/16",
  "010.0.0.0/8",
  "0xa.0.0.0/8",
  "167772160/8",
  "fe80::1%eth0/64",
  "10.0.0.0/33",
  "10.0.0.0",
  "/8",
  "",
])("refuses the network %j, which the parser would read as another network or refuse", (text) => {
  expect(isNetwork(text)).toBe(false);
});

it.each(["10.0.0.0/8", "0.0.0.0/0", "127.0.0.0/8", "fd00::/8", "::/0", "::1/128", "64:ff9b:1::/48"])(
  "accepts %s for callbacks",
  (text) => {
    expect(isCallbackNetwork(text)).toBe(true);
  },
);

it.each([
  "::10.0.0.0/104",
  "::ffff:10.0.0.0/104",
  "::ffff:a00:0/104",
  "64:ff9b::a00:0/104",
  "0.0.0.0/8",
  "0.0.0.7/32",
  "::/128",
  "10/8",
])("refuses %s for callbacks, which would mean another network or reach nothing", (text) => {
  expect(isCallbackNetwork(text)).toBe(false);
});

it.each([
  ["10.0.0.7", true],
  ["fd00::1", true],
  ["fe80::1%eth0", false],
  ["10.7", false],
  ["proxy", false],
])("says whether %s is an address: %s", (text, isOne) => {
  expect(isAddress(text)).toBe(isOne);
});
