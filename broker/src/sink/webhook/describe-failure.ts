import { errors } from "undici";
import { describeNetworkFailure } from "../../lib/network-failure.ts";
import { AttemptError } from "./attempt-error.ts";

/** The failure of an answer with status 101. */
export const switchesProtocols = "answered 101: the broker does not switch protocols";

/** Failures by undici's message, since undici has one code for everything that ends a connection. */
const answerTexts: Readonly<Record<string, string>> = {
  "bad response": "answered 100: the broker asks nobody whether to continue",
  "bad upgrade": switchesProtocols,
};

/** Describes a failed connection, request or answer. Of an unknown error it shows only the code, which contains no data from the receiver. */
export function describeFailure(error: Error): string {
  if (error instanceof AttemptError) return error.message;
  const text = error instanceof errors.SocketError ? answerTexts[error.message] : undefined;
  return text ?? describeNetworkFailure(error);
}

/** Whether an exchange failed because the receiver closed the connection. */
export function isClosedByReceiver(error: Error): boolean {
  return error instanceof errors.SocketError || ("code" in error && /^(ECONNRESET|EPIPE)$/.test(String(error.code)));
}
