import type { TenantNames } from "../../domain/tenant-names.ts";
import type { Attachment, AttachRequest, ConnectedSession, StreamRequest, WillRequest } from "../broker.ts";
import type { Peer } from "../session/peer.ts";
import { TenantPeer } from "./tenant-peer.ts";
import { TenantSession, toTenantAttachment } from "./tenant-session.ts";

export interface TenantAttach {
  readonly names: TenantNames;
  /** Attaches under real names. */
  readonly attach: (request: AttachRequest, peer: Peer) => Promise<Attachment>;
}

/** Attaches a connection of a tenant's client to its session. */
export async function attachInTenant(
  { names, attach }: TenantAttach,
  request: AttachRequest,
  peer: Peer,
): Promise<Attachment> {
  const inTenant = new TenantPeer(peer, names);
  const connected: { session?: ConnectedSession } = {};
  const { will, stream, key } = request;
  const real: AttachRequest = {
    ...request,
    key: stream === undefined ? key : names.toRealId(key), // the principal is part of any other key
    will: will && toRealWill(names, will),
    stream: stream && toRealStream(names, stream),
    onConnected: ({ session, isPresent }) => {
      inTenant.session = session;
      connected.session = new TenantSession(session, names);
      request.onConnected({ session: connected.session, isPresent });
    },
  };
  const attachment = await attach(real, inTenant);
  const session = connected.session ?? new TenantSession(attachment.session, names);
  return toTenantAttachment(attachment, session, names);
}

function toRealWill(names: TenantNames, will: WillRequest): WillRequest {
  return { ...will, call: { ...will.call, topic: names.toReal(will.call.topic) } };
}

function toRealStream(names: TenantNames, stream: StreamRequest): StreamRequest {
  return { ...stream, filters: stream.filters.map((filter) => names.toRealFilter(filter)) };
}
