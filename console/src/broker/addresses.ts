/** Path of the console, without a slash at the end. The broker writes the path into the page. */
export const consolePath = new URL(document.baseURI).pathname.replace(/\/$/, "");

/** URLs of the chain's nodes that the operator lets the page call. The broker writes them into the page. */
export const chainNodes = readWords("chain-nodes");

/** Names of the identity providers whose log-in works at this page's address; keys work everywhere. The broker writes them into the page. */
export const logIns = readWords("log-ins");

/** The address where a log-in begins. The log-in returns to the current view. */
export function toLogInAddress(name: string): string {
  const view = `${location.pathname.slice(consolePath.length)}${location.search}`;
  return `${consolePath}/login/${name}?${new URLSearchParams({ view }).toString()}`;
}

export const logOutAddress = `${consolePath}/logout`;

/** Base URL of the broker, with the base path if one is set: one level above the console. */
export const brokerUrl = new URL("..", document.baseURI).href.replace(/\/$/, "");

/** The extension that says that a content is JSON. The broker writes its prefix of extensions into the page. */
export const formatKey = `${readMeta("extension-prefix")}format`;

function readWords(name: string): readonly string[] {
  return readMeta(name)
    .split(" ")
    .filter((word) => word !== "");
}

function readMeta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}
