import { expect, test } from "vitest";
import { findReceiver, withoutSecrets } from "./receiver.ts";

test.each([
  ["http://a.example/hook?x=1", "http://a.example"],
  ["HTTP://A.Example:80/other", "http://a.example"],
  ["http://a.example./", "http://a.example"],
  ["http://a.example.:8080/", "http://a.example:8080"],
  ["https://a.example/", "https://a.example"],
  ["http://2130706433/", "http://127.0.0.1"],
  ["http://[0:0::1]:81/", "http://[::1]:81"],
  ["", undefined],
])("the receiver of %j is %s", (url, receiver) => {
  expect(findReceiver(url)).toBe(receiver);
});

test.each([
  ["https://a.example:8443/hook/7", "https://a.example:8443/hook/7"],
  ["https://user:secret@a.example/hook", "https://a.example/hook"],
  ["https://a.example/hook?token=secret&x=secret#secret", "https://a.example/hook?token=hidden&x=hidden"],
  ["https://a.example/hook?secret", "https://a.example/hook?hidden"],
  ["https://a.example/hook?secret=", "https://a.example/hook?hidden"],
  ["https://a.example/hook?a%26b=secret=secret", "https://a.example/hook?a%26b=hidden"],
  ["secret", ""],
])("%j is shown as %j", (url, shown) => {
  expect(withoutSecrets(url)).toBe(shown);
});
