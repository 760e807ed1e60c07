import { MqttClient } from "./mqtt-client.mjs";

const openingAtOnce = 100;

/** Opens `count` connections, at most {@link openingAtOnce} at a time. @returns {Promise<MqttClient[]>} */
export async function connectAll(count, port, name = "client") {
  const clients = Array.from({ length: count }, () => new MqttClient());
  for (let from = 0; from < count; from += openingAtOnce) {
    const some = clients.slice(from, from + openingAtOnce);
    await Promise.all(some.map((client, index) => client.open({ port, clientId: `${name}-${from + index}` })));
  }
  return clients;
}
