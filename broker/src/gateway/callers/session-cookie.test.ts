import { expect, it, test } from "vitest";
import { cookieNameOf, findCookie, findSession } from "./session-cookie.ts";

const name = cookieNameOf("", "session");
const own = { "sec-fetch-site": "same-origin", "sec-fetch-dest": "empty" };

test.each([
  [`${name}=a`, "a"],
  [`other=b; ${name}=a`, "a"],
  [`${name}=a=b; ${name}=c`, "a=b"],
  [`x${name}=a`, undefined],
  [name, undefined],
  [`${cookieNameOf("/one/two", "session")}=a`, undefined],
  [undefined, undefined],
])("the header %j holds the cookie %j", (cookie, value) => {
  expect(findCookie({ cookie }, name)).toBe(value);
});

it("names the cookie differently for each base path", () => {
  expect(cookieNameOf("/a/b", "flow")).not.toBe(cookieNameOf("/a-b", "flow"));
});

test.each([
  [{}, "a"],
  [{ "sec-fetch-site": "same-site" }, undefined],
  [{ "sec-fetch-site": "none" }, undefined],
  [{ "sec-fetch-site": undefined }, undefined],
  [{ "sec-fetch-dest": "document" }, undefined],
  [{ "sec-fetch-dest": "websocket" }, undefined],
  [{ "sec-fetch-dest": undefined }, undefined],
])("finds the session with the headers %o: %j", (headers, session) => {
  expect(findSession({ cookie: `${name}=a`, ...own, ...headers }, name)).toBe(session);
});
