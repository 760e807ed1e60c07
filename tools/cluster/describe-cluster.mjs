// The text that the command prints when everything is ready.

export function describeCluster({ chain, database, nodes, logs }) {
  const urlOf = (index) => nodes[index % nodes.length].url;
  const rows = [
    ...nodes.map(({ part, url }) => [part.name, `${url}   process ${part.pid}`]),
    ["chain", chain.url],
    ["database", `${database.url}, password in ${database.passwordFile}`],
    ["logs", logs],
  ];
  const calls = [
    [urlOf(0), "/rest/open?topic=orders/new"],
    [urlOf(1), "/rest/publish?topic=orders/new&content=hello"],
    [urlOf(2), "/rest/state?topic=orders/new"],
    [urlOf(0), "/admin/listSubscription"],
  ];
  return [
    `${nodes.length === 1 ? "A node" : `${nodes.length} nodes`} of one broker can be called:`,
    ...rows.map(([name, value]) => `  ${name.padEnd(10)}${value}`),
    "",
    "Any node answers any call:",
    ...calls.map(([url, path]) => `  curl -sw '\\n' '${url}${path}'`),
    "",
    `MQTT and STOMP clients connect to any node: ${urlOf(1).replace("http", "ws")}/mqtt or /stomp, or the ports that its log names.`,
    "",
    "Kill a node (kill or kill -9, and its process id): the others take over its work. Start it again in another terminal:",
    ...nodes.map(({ part }) => `  ${part.restartCommand}`),
    "",
    "Ctrl-C ends everything except nodes that you started yourself; the data is kept.",
  ].join("\n");
}
