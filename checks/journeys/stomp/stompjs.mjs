/** Runs a client of @stomp/stompjs, in Node.js or in a page. Reports through `say` what the client receives. Returns the function that takes its orders. */
export function createDriver({ Client, config, say }) {
  const client = new Client({ ...config, reconnectDelay: 0 });
  const messages = new Map();
  client.onConnect = () => say({ what: "connected" });
  client.onStompError = ({ headers }) => say({ what: "error", headers });
  client.onWebSocketError = ({ message }) => say({ what: "error", message });

  const onMessage = (message) => {
    messages.set(message.headers["message-id"], message);
    say({ what: "message", headers: message.headers, body: message.body });
  };
  const watch = ({ receipt }) => {
    client.watchForReceipt(receipt, ({ headers }) => say({ what: "receipt", headers }));
  };
  const orders = {
    connect: () => client.activate(),
    subscribe: ({ destination, headers }) => {
      watch(headers);
      client.subscribe(destination, onMessage, headers);
    },
    send: ({ destination, headers, body }) => {
      watch(headers);
      client.publish({ destination, headers, body });
    },
    unsubscribe: ({ headers }) => {
      watch(headers);
      client.unsubscribe(headers.id, headers);
    },
    ack: ({ headers }) => messages.get(headers["message-id"]).ack(),
    nack: ({ headers }) => messages.get(headers["message-id"]).nack(),
    begin: ({ transaction }) => client.begin(transaction),
    commit: ({ transaction }) => client.commit(transaction),
    abort: ({ transaction }) => client.abort(transaction),
    disconnect: () => client.deactivate().then(() => say({ what: "disconnected" })),
  };
  return (order, fields) => {
    orders[order](fields);
  };
}
