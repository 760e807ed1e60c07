import type { ShareStore } from "../../../ports/share-store.ts";
import type { Store } from "../../../ports/store.ts";
import type { SqlSessions } from "./sql-sessions.ts";
import type { SqlShares } from "./sql-shares.ts";

/** Passes calls on to the sessions of a store that may be opened later, or again. */
export function passOnSessions(sessions: () => SqlSessions): Store["sessions"] {
  return {
    claimSession: async (claim) => sessions().claimSession(claim),
    findSession: async (id) => sessions().findSession(id),
    saveSessions: async (rows, options) => sessions().saveSessions(rows, options),
    saveSessionFilters: async (key, change) => sessions().saveSessionFilters(key, change),
    detachSession: async (key, end) => sessions().detachSession(key, end),
    takeDueSession: async (key, owner) => sessions().takeDueSession(key, owner),
    settleWill: async (key) => sessions().settleWill(key),
    removeSession: async (key) => sessions().removeSession(key),
    detachLost: async (groupId) => sessions().detachLost(groupId),
    findSessionTime: async (groupId) => sessions().findSessionTime(groupId),
    advanceSessionTime: async (groupId, byMs) => sessions().advanceSessionTime(groupId, byMs),
    listDueSessions: async (groupId, atMost) => sessions().listDueSessions(groupId, atMost),
    listSessions: async (page) => sessions().listSessions(page),
    findFilterOwner: async (id) => sessions().findFilterOwner(id),
    removeSessionFilter: async (id) => sessions().removeSessionFilter(id),
    listDetached: async (groupId, atMost) => sessions().listDetached(groupId, atMost),
    countDetached: async (groupId) => sessions().countDetached(groupId),
  };
}

/** As {@link passOnSessions}, for shares. */
export function passOnShares(shares: () => SqlShares): ShareStore {
  return {
    findShare: async (groupId, filter) => shares().findShare(groupId, filter),
    findShareCursors: async (groupId, filters) => shares().findShareCursors(groupId, filters),
    listReturned: async (id, page) => shares().listReturned(id, page),
    findReturning: async (ids) => shares().findReturning(ids),
    takeShared: async (take) => shares().takeShared(take),
    returnShared: async (take) => shares().returnShared(take),
  };
}
