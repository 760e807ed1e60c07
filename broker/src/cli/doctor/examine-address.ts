import {
  isBeforeConnection,
  isBlockedPort,
  isNotHttp,
  isPlainText,
  notHttp,
  tlsCodeOf,
} from "../../lib/network-failure.ts";
import { withoutPassword } from "../http-url.ts";
import type { Finding } from "./finding.ts";

/** Time limit for the answer to the first call, in milliseconds: a broker that hangs accepts connections, but never answers. */
const answerTimeoutMs = 10_000;
/** Maximum difference of the clocks, in milliseconds. A larger one breaks tokens, signatures and tails that start at a time. */
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
    return "browsers and fetch refuse to connect to this port: start the broker with another --port";
  const tlsCode = tlsCodeOf(cause);
  if (isPlainText(tlsCode))
    return "something listens there, but does not speak TLS; write http if the broker does not (httpTlsCertificateFile)";
  if (/^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/.test(tlsCode ?? ""))
    return "correct this machine's clock, or renew the broker's certificate (or its authority's, if that has expired)";
  if (tlsCode !== undefined && !tlsCode.startsWith("ERR_SSL_"))
    return "if a private authority signed the broker's certificate, name the file with the authority's certificate by NODE_EXTRA_CA_CERTS; else call the broker by a name of the certificate";
  if (isBeforeConnection(cause) && tlsCode === undefined)
    return "start the broker with stele start, or name another address with --url";
  const tryHttps = "write https if the broker speaks TLS (httpTlsCertificateFile)";
  if (cause === undefined || isNotHttp(cause)) {
    const found = cause === undefined ? "" : `something listens there, but ${notHttp}; `;
    return `${found}${isSecured ? "" : `${tryHttps}, or `}name another address with --url`;
  }
  return isSecured
    ? "something listens there, but ends the connection; a broker with httpTlsClientCaFile does so, because stele shows no client certificate"
    : `something listens there, but ends the connection; ${tryHttps}`;
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
