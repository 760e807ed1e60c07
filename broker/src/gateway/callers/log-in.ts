import type { Caller, Principal } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";

/** The login that an MQTT or STOMP client sends when it connects. */
export interface Login {
  readonly userName: string | undefined;
  readonly password: string | undefined;
}

/** The caller of a connection, with the principal of the login; a promise if authentication takes time. */
export function logIn(broker: Pick<Broker, "authenticate">, caller: Caller, login: Login): Caller | Promise<Caller> {
  const found = broker.authenticate(toCredential(login), caller);
  return found instanceof Promise ? found.then((principal) => as(principal, caller)) : as(found, caller);
}

function as(principal: Principal, caller: Caller): Caller {
  const { address, protocol, certificate } = caller;
  return {
    principal,
    address,
    protocol,
    certificate,
    get signal() {
      return caller.signal;
    },
  };
}

/** The password, or the user name if there is none. */
export function toCredential({ userName, password }: Login): string | undefined {
  return password === undefined || password === "" ? userName : password;
}
