/** Path of the console, without a slash at its end. The broker writes it into the page. */
export const consolePath = new URL(document.baseURI).pathname.replace(/\/$/, "");

/** Nodes of the chain that the operator lets the page ask. The broker writes them into the page. */
export const chainNodes: readonly string[] = (
  document.querySelector<HTMLMetaElement>('meta[name="chain-nodes"]')?.content ?? ""
)
  .split(" ")
  .filter((url) => url !== "");

/** Base URL of the broker, with its context segment: one level above the console. */
export const brokerUrl = new URL("..", document.baseURI).href.replace(/\/$/, "");
