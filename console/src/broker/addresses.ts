/** Path of the console, without a slash at its end. The broker writes it into the page. */
export const consolePath = new URL(document.baseURI).pathname.replace(/\/$/, "");

/** Base URL of the broker, with its context segment: one level above the console. */
export const brokerUrl = new URL("..", document.baseURI).href.replace(/\/$/, "");
