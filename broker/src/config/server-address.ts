import { isIP } from "node:net";

/** Whether a text is the address of a name server, with or without a port. */
export function isServerAddress(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [whole, inBrackets, bare, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):(.*)$/.exec(text) ?? [];
  if (whole === undefined || !isPort(port)) return false;
  return inBrackets === undefined ? isIP(bare ?? "") === 4 : isIP(inBrackets) === 6;
}

export const listenHostRule = "an address or a host name without a port";

/** Whether a text is a host to listen on. Only an IPv6 address has colons. */
export function isListenHost(text: string): boolean {
  return /^[0-9A-Za-z._-]{1,253}$/.test(text) || (/^[0-9A-Fa-f:.]+$/.test(text) && isIP(text) === 6);
}

/** Whether a text is a host and a port at which others reach a node. */
export function isHostPort(text: string): boolean {
  const [, port] = /^(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]{1,253}):(.*)$/.exec(text) ?? [];
  return isPort(port);
}

function isPort(text = ""): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
