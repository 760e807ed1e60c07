import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../../../engine/access/caller.ts";
import { type LogInOrigin, toNetwork } from "../../../engine/access/failed-log-ins.ts";
import type { Broker } from "../../../engine/broker.ts";
import { cookieBytesMax, cookieNameOf, findCookie, formatCookie } from "../../callers/session-cookie.ts";
import { callbackRoute, consolePath } from "../../shared/console-path.ts";
import { findQuery } from "../../shared/find-query.ts";
import { resetConnection } from "../../shared/reset-connection.ts";
import { sendFailurePage } from "./failure-page.ts";
import { decodeFlow, encodeFlow, toPlace, toView } from "./flow.ts";
import { findOrigin, type LogIn, type LogInFault } from "./log-in.ts";

/** Longest session, in seconds; browsers keep no cookie for longer (RFC 6265bis, section 5.5). */
const sessionSecondsMax = 34_560_000;
/** How long a user may take at the provider, in seconds. */
const flowSecondsMax = 600;

export interface LogInRoutesOptions {
  readonly broker: Pick<Broker, "authenticate" | "refuseLogIn">;
  readonly logIns: readonly LogIn[];
  readonly basePath: string;
  /** The `link` element of the console's style sheet; empty for none. */
  readonly styles: string;
}

type NamedRequest = FastifyRequest<{ Params: { name: string } }>;

/** A log-in, and the console's address in the browser. */
interface Visit {
  readonly logIn: LogIn;
  /** Without a slash at its end. */
  readonly consoleUrl: string;
}

/** Why nobody is logged in, and the status of the answer that says so. */
interface Refusal {
  readonly status: number;
  readonly reason: string;
}

const nowhere: Refusal = { status: 404, reason: "There is no such log-in at this address of the console." };
const unfinished: Refusal = {
  status: 400,
  reason:
    "No log-in of this browser waits for this answer: it took more than ten minutes, another one began, or it was finished before. Log in again.",
};
const foreign: Refusal = {
  status: 400,
  reason:
    "The log-in failed: the answer belongs to another log-in than the latest of this browser. Finish that one, or log in again.",
};
const unavailable: Refusal = {
  status: 503,
  reason: "The identity provider cannot be used at present. The broker's log says why. Try again later.",
};

/**
 * Log-in and log-out of the console. The broker keeps no session: the cookie holds the provider's token, which each call verifies like that of any
 * client. So every node accepts every session.
 */
export function registerLogInRoutes(app: FastifyInstance, options: LogInRoutesOptions): void {
  const routes = new LogInRoutes(options);
  const plain = { exposeHeadRoute: false };
  app.get(`${consolePath}/login/:name`, plain, (request: NamedRequest, reply) => routes.begin(request, reply));
  app.get(callbackRoute, plain, (request: NamedRequest, reply) => routes.finish(request, reply));
  app.get(`${consolePath}/logout`, plain, (_request, reply) => routes.end(reply));
}

class LogInRoutes {
  readonly #options: LogInRoutesOptions;
  readonly #path: string;
  readonly #sessionCookie: string;
  readonly #flowCookie: string;

  constructor(options: LogInRoutesOptions) {
    this.#options = options;
    this.#path = `${options.basePath}${consolePath}`;
    this.#sessionCookie = cookieNameOf(options.basePath, "session");
    this.#flowCookie = cookieNameOf(options.basePath, "flow");
  }

  async begin(request: NamedRequest, reply: FastifyReply): Promise<FastifyReply> {
    const visit = this.#visitOf(request);
    if (visit === undefined) return this.#refuse(reply, nowhere);
    const { logIn } = visit;
    const begun = await logIn.provider.begin(callbackOf(visit));
    if (begun.status !== "begun") return this.#refuse(reply, toRefusal(begun));
    const view = toView(queryOf(request).get("view"));
    const value = encodeFlow({ name: logIn.name, secrets: begun.secrets, view });
    // The provider's redirect back comes from another site, and browsers send no `Strict` cookie with it.
    this.#setCookie(reply, { name: this.#flowCookie, value, maxAgeSeconds: flowSecondsMax, sameSite: "Lax" });
    return redirect(reply, begun.url);
  }

  async finish(request: NamedRequest, reply: FastifyReply): Promise<FastifyReply> {
    const visit = this.#visitOf(request);
    if (visit === undefined) return this.#refuse(reply, nowhere);
    const { logIn, consoleUrl } = visit;
    const flow = decodeFlow(findCookie(request.headers, this.#flowCookie) ?? "");
    if (flow === undefined || flow.name !== logIn.name) return this.#refuse(reply, unfinished);
    const query = queryOf(request);
    // Any page can send its visitors here; only the provider knows the state.
    if (query.get("state") !== flow.secrets.state) return this.#refuse(reply, foreign);
    this.#setCookie(reply, { name: this.#flowCookie, value: "", maxAgeSeconds: 0, sameSite: "Lax" });
    const callback = new URL(`${callbackOf(visit)}?${query.toString()}`);
    const { broker } = this.#options;
    const origin = originOf(request);
    const finished = await logIn.provider.finish(callback, flow.secrets, toNetwork(origin.address ?? ""));
    if (finished.status !== "finished") {
      if (isClosed(await broker.refuseLogIn(finished.reason, origin))) return close(reply);
      return this.#refuse(reply, toRefusal(finished));
    }
    const { token } = finished;
    const principal = await broker.authenticate(token, origin);
    if (isClosed(principal)) return close(reply);
    const refusal = findRefusal(principal, logIn) ?? this.#findLengthFault(token);
    if (refusal !== undefined) return this.#refuse(reply, refusal);
    this.#setCookie(reply, {
      name: this.#sessionCookie,
      value: token,
      maxAgeSeconds: secondsLeft(principal),
      sameSite: "Strict",
    });
    return redirect(reply, toPlace(flow.view, consoleUrl));
  }

  end(reply: FastifyReply): FastifyReply {
    this.#setCookie(reply, { name: this.#sessionCookie, value: "", maxAgeSeconds: 0, sameSite: "Strict" });
    return redirect(reply, `${this.#path}/`);
  }

  #visitOf({ params: { name }, headers }: NamedRequest): Visit | undefined {
    const logIn = this.#options.logIns.find((one) => one.name === name);
    const origin = logIn && findOrigin(logIn, headers.host);
    return logIn === undefined || origin === undefined ? undefined : { logIn, consoleUrl: `${origin}${this.#path}` };
  }

  #setCookie(reply: FastifyReply, cookie: Parameters<typeof formatCookie>[0]): void {
    reply.header("set-cookie", formatCookie(cookie)); // Fastify adds it to earlier ones.
  }

  #findLengthFault(token: string): Refusal | undefined {
    const bytes = `${this.#sessionCookie}=${token}`.length;
    if (bytes <= cookieBytesMax) return undefined;
    const reason = `The provider's access token is too long for a cookie: ${bytes} bytes of ${cookieBytesMax}. An operator can have the provider put fewer claims into it.`;
    return { status: 502, reason };
  }

  #refuse(reply: FastifyReply, refusal: Refusal): FastifyReply {
    return sendFailurePage(reply, { ...refusal, consolePath: `${this.#path}/`, styles: this.#options.styles });
  }
}

/** The callback address. Each provider has its own, so that none gets the code of another (RFC 9700, section 4.4.2.2). */
function callbackOf({ logIn, consoleUrl }: Visit): string {
  return `${consoleUrl}/callback/${logIn.name}`;
}

function queryOf({ raw: { url = "" } }: Pick<FastifyRequest, "raw">): URLSearchParams {
  return new URLSearchParams(findQuery(url));
}

function originOf({ forwardedFor, raw }: NamedRequest): LogInOrigin {
  return { address: forwardedFor ?? raw.socket.remoteAddress, protocol: "HTTP" };
}

function isClosed(principal: Principal): boolean {
  return principal.kind === "rejected" && principal.isClosed === true;
}

/** Resets the connection: in a flood nobody gets an answer. */
function close(reply: FastifyReply): FastifyReply {
  reply.hijack();
  resetConnection(reply.request.raw.socket);
  return reply;
}

function redirect(reply: FastifyReply, place: string): FastifyReply {
  return reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" }).redirect(place, 303);
}

function toRefusal({ status, reason }: LogInFault): Refusal {
  return status === "refused" ? { status: 400, reason: `The log-in failed: ${reason}. Log in again.` } : unavailable;
}

/** Why a token begins no session; undefined if it does. The token must come from this provider, and the broker must accept the token in any call. */
function findRefusal(principal: Principal, { issuer }: LogIn): Refusal | undefined {
  if (principal.kind === "rejected" && principal.error !== undefined) return unavailable;
  if (principal.kind === "known" && principal.token?.issuer === issuer) return undefined;
  const why = principal.kind === "rejected" ? `: ${principal.reason}` : "";
  return { status: 403, reason: `The provider logged you in, but this broker does not take its access token${why}.` };
}

function secondsLeft(principal: Principal): number {
  const expiresAt = principal.kind === "known" ? (principal.expiresAt ?? 0) : 0;
  return Math.min(Math.max(0, Math.floor((expiresAt - Date.now()) / 1000)), sessionSecondsMax);
}
