import type { DatabaseSyncInstance } from "@photostructure/sqlite";

/**
 * Renames a damaged table of the index to the first free `damaged_places_N`. Never drop one: SQLite would free every page that the table refers to, and a
 * damaged page may refer to pages of other tables.
 */
export function setAside(database: DatabaseSyncInstance, table: string): void {
  let number = 1;
  while (hasTable(database, `damaged_places_${number}`)) number += 1;
  database.exec(`ALTER TABLE ${table} RENAME TO damaged_places_${number}`);
}

export function hasTable(database: DatabaseSyncInstance, name: string): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(name) !== undefined;
}
