/** Codes of the errors of SQLite (https://www.sqlite.org/rescode.html). */
export const SQLITE_BUSY = 5;
export const SQLITE_FULL = 13;

/** Returns the code of an error of `node:sqlite`; undefined for another error. */
export function sqliteCode(error: unknown): number | undefined {
  // Extended codes have the code in their lowest byte.
  const { errcode } = Object(error);
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}
