/** Sends a request to a chain node. Throws with the node's error. @param {string} url @param {string} method @param {readonly unknown[]} params */
export async function requestRpc(url, method, params = []) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { error, result } = await response.json();
  if (error !== undefined) throw new Error(`${method} failed: ${JSON.stringify(error)}`);
  return result;
}
