/** Whether a text is an http or https URL without credentials that needs no escaping in a header or an HTML attribute. */
export function isNodeUrl(value: string): boolean {
  if (!/^https?:\/\/[^\s"'<>;,&*]+$/.test(value) || !URL.canParse(value)) return false;
  const { username, password } = new URL(value);
  return username === "" && password === "";
}

/** Whether a text is `*`, or an origin as browsers spell it: no request would ever match another spelling. */
export function isOrigin(value: string): boolean {
  if (value.includes("*")) return value === "*";
  if (/^[a-z-]+-extension:\/\/[0-9A-Za-z-]+$/.test(value)) return true;
  return URL.canParse(value) && new URL(value).origin === value;
}
