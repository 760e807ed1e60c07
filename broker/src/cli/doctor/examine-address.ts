import { isBlockedPort } from "../../lib/network-failure.ts";
import { withoutPassword } from "../http-url.ts";
import type { Finding } from "./finding.ts";

/** Time limit for the answer to the first call, in milliseconds: a broker that hangs accepts connections, but never answers. */
const answerTimeoutMs = 10_000;
/** A larger difference of the clocks breaks tokens, signatures and tails that start at a time. */
const clockSkewMsMax = 5_000;

/** Checks whether the address answers, and whether its clock agrees with ours. */
export async function examineAddress(url: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const shown = withoutPassword(url);
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const timer = setTimeout(end, answerTimeoutMs);
  signal.addEventListener("abort", end);
  try {
    const askedAt = Date.now();
    const answer = await fetch(`${url.replace(/\/+$/, "")}/health/live`, { signal: ending.signal });
    await answer.arrayBuffer();
    const live: Finding = { check: "address", status: "ok", detail: `${shown} answers` };
    if (!answer.ok) {
      const advice = "check that this is the address of a broker, with its base path if one is set";
      return [{ ...live, status: "failed", detail: `${shown} answers with status ${answer.status}`, advice }];
    }
    return [live, ...examineClock(answer.headers.get("date"), { askedAt, answeredAt: Date.now() })];
  } catch (error) {
    signal.throwIfAborted();
    if (ending.signal.aborted) {
      const detail = `${shown} does not answer within ${answerTimeoutMs / 1_000} s`;
      return [
        { check: "address", status: "failed", detail, advice: "see the broker's log, and restart it if it hangs" },
      ];
    }
    return [{ check: "address", status: "failed", ...explain(error, shown) }];
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

/** Why `fetch` got no answer, and what to do. */
function explain(error: unknown, url: string): { readonly detail: string; readonly advice: string } {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  // An error without a code says why `fetch` did not even try.
  const reason = cause instanceof Error ? ` (${"code" in cause ? String(cause.code) : cause.message})` : "";
  return { detail: `${url} does not answer${reason}`, advice: adviceFor(cause, url.startsWith("https:")) };
}

function adviceFor(cause: unknown, isSecured: boolean): string {
  if (isBlockedPort(cause))
    return "programs that call by fetch connect to no such port: start the broker with another --port";
  if (isEndedByOther(cause)) {
    return isSecured
      ? "something listens there, but ends the connection; a broker with httpTlsClientCaFile does so, because stele shows no client certificate"
      : "something listens there, but ends the connection; write https if the broker speaks TLS (httpTlsCertificateFile)";
  }
  const start = "start the broker with stele start, or name another address with --url";
  const certificate =
    "if Node.js does not trust the broker's certificate, name the file with its authority's certificate by NODE_EXTRA_CA_CERTS";
  return isSecured ? `${start}; ${certificate}` : start;
}

/** With TLS 1.3, a server refuses a client without a certificate only after the handshake: the client may see the alert, or only the end. */
const endings = /^(?:UND_ERR_SOCKET|ECONNRESET|ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED)$/;

function isEndedByOther(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && endings.test(String(cause.code));
}

/** Compares the clocks. The broker wrote the Date header between the two times, in whole seconds. */
function examineClock(
  date: string | null,
  { askedAt, answeredAt }: { readonly askedAt: number; readonly answeredAt: number },
): readonly Finding[] {
  const time = Date.parse(date ?? "");
  const skewMs = Math.max(0, askedAt - 1_000 - time, time - answeredAt);
  if (Number.isNaN(skewMs)) return [];
  const isClose = skewMs <= clockSkewMsMax;
  const detail = isClose
    ? "the clocks agree"
    : `the broker's clock is ${Math.round(skewMs / 1_000)} s off this machine's`;
  const advice = isClose ? undefined : "let both synchronise their clocks (NTP)";
  return [{ check: "clock", status: isClose ? "ok" : "warning", detail, advice }];
}
