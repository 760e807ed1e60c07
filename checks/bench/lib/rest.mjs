/** Calls the broker over REST. Throws if the broker answers with a failure. @param {number} port */
export async function callRest(port, operation, parameters) {
  const response = await fetch(`http://127.0.0.1:${port}/rest/${operation}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(parameters),
  });
  const result = await response.json();
  if (result?.code !== undefined) throw new Error(`${operation} failed: ${JSON.stringify(result)}`);
  return result;
}
