/** A curl command of a documentation page, as the request that curl would send. */
export interface CurlRequest {
  readonly url: string;
  readonly init: RequestInit;
}

/** Parses the few options that the pages use; throws for any other. Understands shell quotes, and lines continued with a backslash. */
export function parseCurl(command: string): CurlRequest {
  const words = [...command.replaceAll("\\\n", " ").matchAll(/'([^']*)'|"([^"]*)"|([^\s'"]+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? "",
  );
  if (words.shift() !== "curl") throw new Error(`no curl command: ${command}`);
  const headers = new Headers();
  const data: string[] = [];
  let url = "";
  let isGet = false;
  while (words.length > 0) {
    const word = words.shift() ?? "";
    if (word === "-G") isGet = true;
    else if (word === "-H") addHeader(headers, words.shift() ?? "");
    else if (word === "-d") data.push(words.shift() ?? "");
    else if (word === "--data-urlencode") data.push(encodePair(words.shift() ?? ""));
    else if (word.startsWith("http")) url = word;
    else throw new Error(`unknown option ${word}`);
  }
  if (data.length === 0) return { url, init: { headers } };
  if (isGet) return { url: `${url}?${data.join("&")}`, init: { headers } };
  if (!headers.has("content-type")) headers.set("content-type", "application/x-www-form-urlencoded");
  return { url, init: { method: "POST", headers, body: data.join("&") } };
}

function addHeader(headers: Headers, line: string): void {
  const colon = line.indexOf(":");
  headers.set(line.slice(0, colon), line.slice(colon + 1).trim());
}

function encodePair(pair: string): string {
  const equals = pair.indexOf("=");
  return `${pair.slice(0, equals)}=${encodeURIComponent(pair.slice(equals + 1))}`;
}
