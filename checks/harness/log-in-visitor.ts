import { type IncomingHttpHeaders, request } from "node:http";
import { text } from "node:stream/consumers";

export interface VisitorAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface RequestOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Headers that a browser adds to a request from a script to the page's own origin. */
export const ownScript = { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" };

const redirectsMax = 10;

/** Follows a log-in as a browser does, with a cookie jar for each host. A test can inspect and change each step. */
export class LogInVisitor {
  /** For each host, the values of its cookies by name. */
  readonly jars = new Map<string, Map<string, string>>();

  /** Sends one request and follows no redirect. */
  async ask(url: string, { method = "GET", headers = {} }: RequestOptions = {}): Promise<VisitorAnswer> {
    const { hostname } = new URL(url);
    const jar = this.jars.get(hostname) ?? new Map<string, string>();
    this.jars.set(hostname, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await send(url, { method, headers: { ...(cookie !== "" && { cookie }), ...headers } });
    for (const line of answer.headers["set-cookie"] ?? []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/; *max-age=0/i.test(line) || /expires=Thu, 01 Jan 1970/i.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  }

  /** Follows redirects until a redirect leads to an address that begins with `until`. Returns that address. */
  async follow(url: string, until: string): Promise<string> {
    let address = url;
    for (let count = 0; count < redirectsMax; count += 1) {
      const { status, headers, body } = await this.ask(address);
      if (headers.location === undefined) throw new Error(`${address} answers ${status}: ${body}`);
      address = new URL(headers.location, address).href;
      if (address.startsWith(until)) return address;
    }
    throw new Error(`too many redirects: ${address}`);
  }
}

export function send(url: string, { method = "GET", headers = {} }: RequestOptions = {}): Promise<VisitorAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { connection: "close", ...headers } }, (response) => {
      text(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        reject,
      );
    });
    sent.on("error", reject);
    sent.end();
  });
}
