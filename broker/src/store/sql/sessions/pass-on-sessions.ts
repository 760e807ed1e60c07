import type { Store } from "../../../ports/store.ts";
import type { SqlSessions } from "./sql-sessions.ts";

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
    findShare: async (groupId, filter) => sessions().findShare(groupId, filter),
    findShareCursors: async (groupId, filters) => sessions().findShareCursors(groupId, filters),
    listReturned: async (id, page) => sessions().listReturned(id, page),
    findReturning: async (ids) => sessions().findReturning(ids),
    takeShared: async (take) => sessions().takeShared(take),
    returnShared: async (take) => sessions().returnShared(take),
  };
}
