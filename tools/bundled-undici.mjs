// What the broker uses of undici, for the bundle. undici's own entry also loads fetch, WebSockets, caches and mocks.
import request from "undici/lib/api/api-request.js";
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";

Dispatcher.prototype.request = request;

export { default as buildConnector } from "undici/lib/core/connect.js";
export { default as errors } from "undici/lib/core/errors.js";
export { default as Client } from "undici/lib/dispatcher/client.js";
export { default as Pool } from "undici/lib/dispatcher/pool.js";
