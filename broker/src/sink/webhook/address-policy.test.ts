import { expect, test } from "vitest";
import { createAddressPolicy } from "./address-policy.ts";

const strict = createAddressPolicy({ allowNetworks: [], allowLoopback: false });

const publicAddresses = [
  "1.1.1.1",
  "8.8.8.8",
  "93.184.216.34",
  "100.63.255.255",
  "100.128.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.167.255.255",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2a00:1450:4001:830::200e",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
];

const refusedAddresses = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "10.255.255.255",
  "100.64.0.1",
  "100.100.100.200",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.0.1",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.0.192",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.0.1",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::2",
  "::127.0.0.1",
  "::8.8.8.8",
  "::ffff:0.0.0.0",
  "::ffff:10.0.0.1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:169.254.169.254",
  "::ffff:168.63.129.16",
  "::ffff:0:127.0.0.1",
  "64:ff9b::10.0.0.1",
  "64:ff9b::127.0.0.1",
  "64:ff9b::169.254.169.254",
  "64:ff9b:1::8.8.8.8",
  "100::1",
  "2001::1",
  "2001:2::1",
  "2001:10::1",
  "2001:20::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "2002:808:808::",
  "3fff::1",
  "4000::1",
  "5f00::1",
  "fc00::1",
  "fd00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "febf::1",
  "fec0::1",
  "ff02::1",
  "ffff::1",
  "",
  "not an address",
  "localhost",
];

test.each(publicAddresses)("%s is public", (address) => {
  expect(strict(address, 443)).toBe(true);
});

test.each(refusedAddresses)("%s is refused", (address) => {
  expect(strict(address, 443)).toBe(false);
});

const opened = createAddressPolicy({ allowNetworks: ["10.1.0.0/16", "fd00:1::/32"], allowLoopback: false });

test.each([
  ["10.1.2.3", true],
  ["::ffff:10.1.2.3", true],
  ["10.2.0.0", false],
  ["fd00:1::5", true],
  ["fd00:2::5", false],
  ["127.0.0.1", false],
  ["8.8.8.8", true],
])("with two networks allowed, callbacks may reach %s: %s", (address, isAllowed) => {
  expect(opened(address, 443)).toBe(isAllowed);
});

const local = createAddressPolicy({ allowNetworks: [], allowLoopback: true });

test.each([
  ["127.0.0.1", true],
  ["127.9.9.9", true],
  ["::1", true],
  ["::ffff:127.0.0.1", true],
  ["0.0.0.0", false],
  ["::127.0.0.1", false],
  ["192.168.0.1", false],
  ["169.254.169.254", false],
])("with loopback allowed, callbacks may reach %s: %s", (address, isAllowed) => {
  expect(local(address, 1024)).toBe(isAllowed);
});

const both = createAddressPolicy({ allowNetworks: ["127.0.0.0/8"], allowLoopback: true });

test.each([
  ["127.0.0.1", 1023, false],
  ["127.0.0.1", 1024, true],
  ["::1", 80, false],
  ["::ffff:127.0.0.1", 443, false],
  ["8.8.8.8", 80, true],
])("allows only high ports of loopback, even if its network is allowed: %s at %d: %s", (address, port, isAllowed) => {
  expect(both(address, port)).toBe(isAllowed);
  expect(local(address, port)).toBe(isAllowed);
});

const wide = createAddressPolicy({ allowNetworks: ["0.0.0.0/0", "::/0"], allowLoopback: true });

test.each(["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "64:ff9b::0.0.0.0"])(
  "refuses the unspecified address %s, which leads to loopback, even if every network is allowed",
  (address) => {
    for (const port of [80, 8080]) expect(wide(address, port)).toBe(false);
    expect(wide("10.0.0.1", 80)).toBe(true);
  },
);

const ownAddresses = () => ["93.184.216.34", "2606:2800:220:1::1"];

test("refuses a public address of this machine unless its network is allowed", () => {
  const closed = createAddressPolicy({ allowNetworks: [], allowLoopback: false, ownAddresses });
  for (const address of [...ownAddresses(), "::ffff:93.184.216.34", "2606:2800:0220:0001:0:0:0:1"]) {
    expect(closed(address, 443)).toBe(false);
  }
  expect(closed("93.184.216.35", 443)).toBe(true);
  const allowed = createAddressPolicy({ allowNetworks: ["93.184.216.34/32"], allowLoopback: false, ownAddresses });
  expect(allowed("93.184.216.34", 443)).toBe(true);
});
