import { UsageError } from "./io.ts";

const noUrl = { protocol: "", username: "", password: "" } as const;

/**
 * Checks a URL that the user gives; `name` says where. `localhost:3000` is a URL too, but of the scheme `localhost`. A user name and a password are refused,
 * because no request would carry them, and the message does not show them.
 * @throws UsageError unless the text is an http or https URL.
 */
export function checkHttpUrl(text: string, name: string): void {
  const { protocol, username, password } = URL.canParse(text) ? new URL(text) : noUrl;
  if (username !== "" || password !== "") throw new UsageError(`${name} contains a user name or a password`);
  if (!/^https?:$/.test(protocol)) throw new UsageError(`not an http(s) URL: ${text}`);
}
