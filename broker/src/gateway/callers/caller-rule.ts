import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { quote } from "@stele/wire";
import { HostRule } from "./host-rule.ts";
import type { OriginRule } from "./origin-rule.ts";

/** Settings with which operators admit more callers; a refusal names the setting that would help. */
const hostsSetting = "STELE_ALLOWED_HOSTS";
const originsSetting = "STELE_ALLOWED_ORIGINS";

/** How the `user-agent` of callbacks begins (docs/callbacks.md). */
const callbackAgent = "stele/";

const absoluteTarget = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

export interface CallerRuleOptions {
  /** Names under which clients reach this broker, besides IP addresses and localhost. */
  readonly allowedHosts: readonly string[];
  /** Undefined if no page of another origin may call. */
  readonly origins: OriginRule | undefined;
}

/**
 * Decides which requests the broker serves at all. It refuses pages of other origins. Without authentication, everybody who reaches the port may call; and a
 * user's browser reaches ports that the author of a web page cannot reach. Browsers report the page in `Sec-Fetch-Site` and `Origin`, which no page can change.
 * Other clients send neither.
 */
export class CallerRule {
  readonly #hosts: HostRule;
  readonly #origins: OriginRule | undefined;

  constructor({ allowedHosts, origins }: CallerRuleOptions) {
    this.#hosts = new HostRule(allowedHosts);
    this.#origins = origins;
  }

  /** Why a request is not served; undefined if it is. Reads no body. */
  findRefusal(request: IncomingMessage): string | undefined {
    return this.findHostFault(request) ?? this.#findPageFault(request) ?? findLoop(request);
  }

  /** Why the request's host is refused; undefined if it is one of this broker's. */
  findHostFault({ headers, url = "" }: IncomingMessage): string | undefined {
    const { host } = headers;
    if (url[0] !== "/") {
      const target = absoluteTarget.exec(url)?.[1];
      if (target !== undefined && !this.#hosts.allows(target)) return toHostFault(target);
    }
    return host === undefined || this.#hosts.allows(host) ? undefined : toHostFault(host);
  }

  #findPageFault({ headers, socket }: IncomingMessage): string | undefined {
    if (!isOfPage({ headers })) return undefined;
    const site = headers["sec-fetch-site"];
    const { origin, host } = headers;
    if (this.#origins?.allows(origin) === true) return undefined;
    // The browser has compared the origins. Its result is right even if a proxy ends TLS, so that the scheme differs here.
    if (site === "same-origin") return undefined;
    if (site !== undefined && site !== "none") {
      const page = origin === undefined ? "another site" : quote(origin);
      return `a web page of ${page} sent the request; ${this.#remedy}`;
    }
    if (origin === undefined || origin === `${socket instanceof TLSSocket ? "https" : "http"}://${host}`)
      return undefined;
    return `web pages of ${quote(origin)} may not call; ${this.#remedy}`;
  }

  get #remedy(): string {
    return this.#origins === undefined ? "no setting allows them here" : `${originsSetting} allows more origins`;
  }
}

/** Whether a browser sent a request, usually for a web page. Programs send neither `Sec-Fetch-Site` nor `Origin`. */
export function isOfPage({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers["sec-fetch-site"] !== undefined || headers.origin !== undefined;
}

/**
 * Why the answer must be 400 (RFC 9112, section 3.2): no Host header, or several. Of several, Node uses the first, but a proxy in front may have checked
 * another one. HTTP/1.0 needs none; no browser speaks HTTP/1.0.
 */
export function findHostCountFault({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === "host") count += 1;
  }
  if (count > 1) return "the request has more than one Host header";
  return count === 0 && httpVersion === "1.1" ? "the request has no Host header" : undefined;
}

/** Why the broker refuses a callback: a subscription whose url is a publish call would send events in a loop, to its own broker or between two brokers. */
function findLoop({ headers }: IncomingMessage): string | undefined {
  const isCallback = headers["user-agent"]?.startsWith(callbackAgent) === true;
  return isCallback ? "callbacks of a broker may not call a broker" : undefined;
}

function toHostFault(host: string): string {
  return `the host ${quote(host)} is not one of this broker's; ${hostsSetting} allows more names`;
}
